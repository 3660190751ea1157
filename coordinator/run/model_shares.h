// Distribution of the tensors in a model's folder to the stages that hold those parameters.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "config/specs.h"
#include "coordinator/files/model_folder.h"
#include "coordinator/fleet/fleet.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Tensors of a folder, divided among stages.
class ModelShares {
 public:
  // Divides the tensors for the model and the stages of a resolved experiment. A name may lack its
  // first part, and buffers are left out (models/file_tensors.h). InvalidArgument names the folder
  // and the tensors that are missing, unknown to the model, of another shape, or not F32, F16 or
  // BF16.
  static absl::StatusOr<ModelShares> Of(const Experiment& experiment, ModelFolder folder);

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

  // Returns the cuts whose bottlenecks, and the parts of a head, that are not in the folder and so
  // keep their values.
  const std::vector<std::string>& fresh() const { return fresh_; }

  // Sends every stage of a configured fleet its tensors, piece by piece from the files. Errors as
  // Fleet::OnAll.
  absl::Status Import(Fleet* fleet) const;
  // Does the same as one part of the state that the stages had after `step`. What belongs to one of
  // the `replicas` goes to its carrier.
  absl::Status Restore(const StatePart& part, uint64_t step, int replicas, Fleet* fleet) const;

 private:
  struct Share {
    std::string name;  // name of the parameter, which the file may abbreviate
    ModelFolder::Entry entry;
    size_t folder = 0;  // of folders_
  };

  explicit ModelShares(ModelFolder folder) { folders_.push_back(std::move(folder)); }
  using IsWanted = std::function<bool(const ParameterSpec&)>;
  // Matches all parameters that are wanted, without the bottlenecks and parts in `fresh`.
  static absl::StatusOr<ModelShares> Match(const Partition& partition, const IsWanted& is_wanted,
                                           std::vector<std::string> fresh, ModelFolder folder);
  // Adds the tensors of an adapter's folder, in the place of values that the stages keep.
  static absl::StatusOr<ModelShares> OfAdapter(const Partition& partition, const std::string& dir);
  void AddAdapter(ModelShares adapter);
  absl::Status Write(const std::vector<Share>& shares, const StageClient::Sink& sink) const;

  std::vector<ModelFolder> folders_;
  std::vector<std::string> fresh_;
  std::vector<std::vector<Share>> stages_;
  std::vector<std::vector<std::string>> kept_;  // by stage: parameters of what is fresh
};

}  // namespace thinwire
