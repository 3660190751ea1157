// Distribution of the tensors in a model's folder to the stages that hold those parameters.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/model_folder.h"
#include "config/specs.h"
#include "coordinator/fleet/fleet.h"
#include "proto/checkpoint.pb.h"
#include "proto/experiment.pb.h"
#include "proto/stage.pb.h"

namespace thinwire {

// Name of the part of a model that adapters are, among those that a folder may lack.
inline constexpr char kAdapters[] = "lora";

// Tensors of a folder, divided among stages.
class ModelShares {
 public:
  // Divides the tensors for the model and the stages of a resolved experiment. A name may lack its
  // first part, and buffers are left out (models/file_tensors.h). InvalidArgument names the folder
  // and the tensors that are missing, unknown to the model, of another shape, or not F32, F16 or
  // BF16.
  static absl::StatusOr<ModelShares> Of(const Experiment& experiment, ModelFolder folder);

  // Does the same for the parameters of a replica, whose files may lack frozen ones.
  static absl::StatusOr<ModelShares> OfReplica(const Experiment& experiment, ModelFolder folder);

  // Does the same for the optimizer's state called `buffer` (nn/optimizer_spec.h), or for that of
  // the outer optimizer, kOuterMomentum. Its tensors belong to some of the trained parameters and
  // have their names.
  static absl::StatusOr<ModelShares> OfRemembered(const Experiment& experiment,
                                                  const std::string& buffer, ModelFolder folder);

  // Divides the tensors of the folder that the experiment starts from (`init`), and those of the
  // adapter that it goes on with (`lora.init`); errors name the field. The folder must have all
  // tensors of a cut's bottleneck, or of a part of an encoder's head (models/encoder.h), or none.
  // It may have parts of heads for other tasks.
  static absl::StatusOr<ModelShares> Initial(const Experiment& experiment);

  // Divides the tensors of `lora.init` alone; the stages keep all others.
  static absl::StatusOr<ModelShares> InitialAdapter(const Experiment& experiment);

  // Does the same as Initial for the folders of all stages, which are equal as far as this list
  // tells.
  static absl::StatusOr<ModelShares> Listed(const Experiment& experiment,
                                            const ListInitialResponse& list);

  // Divides only the tensors of a checkpoint's base, from the folders of all stages.
  static absl::StatusOr<ModelShares> OfBase(const Experiment& experiment,
                                            const CheckpointBase& base,
                                            const ListInitialResponse& list);

  // Divides the parameters that are not in the base, from a checkpoint's files.
  static absl::StatusOr<ModelShares> BesideBase(const Experiment& experiment,
                                                const CheckpointBase& base, ModelFolder folder);

  // Returns the cuts whose bottlenecks, and the parts of a head, that are not in the folder and so
  // keep their values.
  const std::vector<std::string>& fresh() const { return fresh_; }

  const ModelFolder& folder() const { return folders_.front(); }
  // Returns the names of all tensors by stage, in the order of the model; of a tied weight the
  // first.
  std::vector<std::vector<std::string>> names() const;

  // Sends every stage of a configured fleet its tensors, piece by piece from the files. Adds those
  // of frozen parameters to `base`, if it is not null, with digests of what was sent. Errors as
  // Fleet::OnAll.
  absl::Status Import(Fleet* fleet, CheckpointBase* base = nullptr) const;
  // Makes every stage of a configured fleet read its tensors of its own folder. `digests` gets
  // those of what each server read, by name. Errors as Fleet::OnAll.
  using Digests = std::map<std::string, std::string>;  // SHA-256 by name
  absl::Status ReadAtStages(Fleet* fleet, std::vector<Digests>* digests) const;
  // Returns whether a tensor is that of a frozen parameter, and its bytes in the folder. The name
  // must be one of names().
  bool IsFrozen(const std::string& name) const;
  uint64_t BytesOf(const std::string& name) const;
  // Does the same as one part of the state that the stages had after `step`. What belongs to one of
  // the `replicas` goes to its carrier.
  absl::Status Restore(const StatePart& part, uint64_t step, int replicas, Fleet* fleet) const;

 private:
  struct Share {
    std::string name;  // name of the parameter, which the file may abbreviate
    ModelFolder::Entry entry;
    bool is_frozen = false;
    std::vector<std::string> equal = {};  // tensors elsewhere that must have its values
    size_t folder = 0;                    // of folders_
  };

  explicit ModelShares(ModelFolder folder) { folders_.push_back(std::move(folder)); }
  using IsWanted = std::function<bool(const ParameterSpec&)>;
  const Share& ShareOf(const std::string& name) const;
  // Matches all parameters that are wanted, without the bottlenecks and parts in `fresh`.
  static absl::StatusOr<ModelShares> Match(const Partition& partition, const IsWanted& is_wanted,
                                           std::vector<std::string> fresh, ModelFolder folder);
  // Writes a file of these tensors. `digests` gets those of frozen ones, unless it is null.
  absl::Status Write(const std::vector<Share>& shares, const StageClient::Sink& sink,
                     Digests* digests = nullptr) const;
  // Adds the tensors of an adapter's folder, in the place of values that the stages keep.
  static absl::StatusOr<ModelShares> OfAdapter(const Partition& partition, const std::string& dir);
  void AddAdapter(ModelShares adapter);

  std::vector<ModelFolder> folders_;
  std::vector<std::string> fresh_;
  std::vector<std::vector<Share>> stages_;
  // By stage: parameters of what is fresh, and those that were not wanted.
  std::vector<std::vector<std::string>> kept_;
};

}  // namespace thinwire
