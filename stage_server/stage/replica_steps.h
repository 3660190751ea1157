// The steps of the replicas that one process carries. They take turns, and exchange their gradients
// every step, or what they learned in rounds of local steps.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/stage.pb.h"
#include "stage_server/stage/local_stage.h"

namespace thinwire {

// For the executor's thread alone. Both kinds of steps add the loss of each replica to the report.
class ReplicaSteps {
 public:
  // Runs forward and backward of work.replica's microbatches.
  using Accumulate = std::function<absl::StatusOr<LossSums>(const Work& work)>;

  // Makes the steps of the replicas of `stage`, which outlives this object.
  explicit ReplicaSteps(LocalStage* stage) : stage_(stage) {}

  // Runs one replica after the other. Gradients and running statistics end as all replicas use
  // them.
  absl::StatusOr<LossSums> Average(Work work, const Accumulate& accumulate, StepReport* report);

  // Trains each replica by itself, at the report's learning rate; one without samples keeps its
  // state. Behind that it exchanges what they learned, as far as it is due.
  absl::StatusOr<LossSums> TrainLocally(Work work, const Accumulate& accumulate,
                                        int64_t steps_per_epoch, StepReport* report);
  // Finishes all exchanges between two steps, after which the stage has the shared parameters. Does
  // nothing where replicas do not train locally.
  absl::Status Finish();

 private:
  absl::Status ExchangeLearned(const Work& work, int64_t steps_per_epoch);
  // Sends the contributions to a fragment, and later takes their sum as the shared values. The
  // second does nothing where that was done.
  absl::Status BeginExchange(Work work, int fragment);
  absl::Status FinishExchange(int fragment);
  absl::Status FinishExchanges();

  LocalStage* const stage_;
  std::map<int, Work> exchanges_;  // that began and have not finished, by fragment
};

}  // namespace thinwire
