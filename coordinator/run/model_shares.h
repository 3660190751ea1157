// The tensors of a model's folder, dealt out to the stages whose parameters they are.
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

class ModelShares {
 public:
  // For the model and the stages of a resolved experiment. A name may lack its first part, and
  // buffers are left out (models/file_tensors.h). InvalidArgument names the folder and tensors that
  // are missing, that the model does not have, whose shape differs, or that are not of F32, F16 or
  // BF16.
  static absl::StatusOr<ModelShares> Of(const Experiment& experiment, ModelFolder folder);

  // The same for what the experiment's optimizer remembers under that name (nn/optimizer_spec.h):
  // tensors that stand for some of the parameters that are trained, under their names.
  static absl::StatusOr<ModelShares> OfRemembered(const Experiment& experiment,
                                                  const std::string& buffer, ModelFolder folder);

  // Those of the folder that the experiment starts from (`init`), whose errors name that field. The
  // folder need not have a cut's bottleneck, of which it has all tensors or none.
  static absl::StatusOr<ModelShares> Initial(const Experiment& experiment);

  // The cuts, in order, whose bottlenecks the folder does not have and so stay as they are.
  const std::vector<std::string>& fresh() const { return fresh_; }

  // Gives every stage of a configured fleet its own tensors, from the files piece by piece. Errors
  // as Fleet::OnAll.
  absl::Status Import(Fleet* fleet) const;
  // The same as one part of the state that the stages had after `step`.
  absl::Status Restore(const StatePart& part, uint64_t step, Fleet* fleet) const;

 private:
  struct Share {
    std::string name;  // the parameter's, which the file may abbreviate
    ModelFolder::Entry entry;
  };

  explicit ModelShares(ModelFolder folder) : folder_(std::move(folder)) {}
  using IsWanted = std::function<bool(const ParameterSpec&)>;
  // Of all parameters that are wanted but the bottlenecks in `fresh`.
  static absl::StatusOr<ModelShares> Match(const Partition& partition, const IsWanted& is_wanted,
                                           std::vector<std::string> fresh, ModelFolder folder);
  absl::Status Write(const std::vector<Share>& shares, const StageClient::Sink& sink) const;

  ModelFolder folder_;
  std::vector<std::string> fresh_;
  std::vector<std::vector<Share>> stages_;
  std::vector<std::vector<std::string>> kept_;  // by stage: parameters of fresh bottlenecks
};

}  // namespace thinwire
