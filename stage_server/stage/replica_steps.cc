#include "stage_server/stage/replica_steps.h"

#include <vector>

#include "base/status.h"
#include "stage_server/replicas/rounds.h"
#include "stage_server/stage/batch_parts.h"

namespace thinwire {
namespace {

void AddLosses(const LossSums& of_replica, LossSums* sums, StepReport* report) {
  sums->loss += of_replica.loss;
  sums->correct += of_replica.correct;
  sums->counted += of_replica.counted;
  report->add_replica_losses(of_replica.loss);
}

}  // namespace

absl::StatusOr<LossSums> ReplicaSteps::Average(Work work, const Accumulate& accumulate,
                                               StepReport* report) {
  RETURN_IF_ERROR(stage_->StartStep(work));
  const ReplicaRange carried = stage_->spec().carried();
  LossSums sums;
  for (work.replica = carried.first; work.replica < carried.end; ++work.replica) {
    RETURN_IF_ERROR(stage_->StartReplica());
    ASSIGN_OR_RETURN(const LossSums of_replica, accumulate(work));
    AddLosses(of_replica, &sums, report);
    RETURN_IF_ERROR(stage_->Contribute(work));
  }
  RETURN_IF_ERROR(stage_->TakeAverage(work));
  return sums;
}

absl::StatusOr<LossSums> ReplicaSteps::TrainLocally(Work work, const Accumulate& accumulate,
                                                    int64_t steps_per_epoch, StepReport* report) {
  const ReplicaRange carried = stage_->spec().carried();
  LossSums sums;
  for (work.replica = carried.first; work.replica < carried.end; ++work.replica) {
    work.loss_samples = SamplesOf(stage_->spec(), work.batch_size, work.replica);
    RETURN_IF_ERROR(stage_->local()->Load(work.replica, work.step));
    ASSIGN_OR_RETURN(const LossSums of_replica, accumulate(work));
    AddLosses(of_replica, &sums, report);
    RETURN_IF_ERROR(work.loss_samples > 0 ? stage_->Update(work, report->learning_rate())
                                          : stage_->ClearGradients());
  }
  RETURN_IF_ERROR(ExchangeLearned(work, steps_per_epoch));
  return sums;
}

absl::Status ReplicaSteps::ExchangeLearned(const Work& work, int64_t steps_per_epoch) {
  const ReplicasSpec& replicas = stage_->spec().replicas;
  StepOfEpoch step;
  step.place = static_cast<int64_t>(work.step) - (work.epoch - 1) * steps_per_epoch;
  step.steps = steps_per_epoch;
  const std::vector<int> sent = FragmentsSent(replicas, step);
  const std::vector<int> taken = FragmentsTaken(replicas, step);
  if (sent.empty() && taken.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(stage_->local()->LoadShared());
  if (step.is_last()) RETURN_IF_ERROR(FinishExchanges());
  if (!sent.empty()) RETURN_IF_ERROR(stage_->StartStep(work));
  for (const int fragment : sent) RETURN_IF_ERROR(BeginExchange(work, fragment));
  for (const int fragment : taken) RETURN_IF_ERROR(FinishExchange(fragment));
  return stage_->local()->Take(taken, step.is_last() ? 0 : replicas.mix);
}

absl::Status ReplicaSteps::BeginExchange(Work work, int fragment) {
  work.fragment = fragment;
  const ReplicaRange carried = stage_->spec().carried();
  for (work.replica = carried.first; work.replica < carried.end; ++work.replica) {
    RETURN_IF_ERROR(stage_->local()->LoadDifference(fragment, work.replica));
    RETURN_IF_ERROR(stage_->Contribute(work));
  }
  exchanges_[fragment] = work;
  return absl::OkStatus();
}

absl::Status ReplicaSteps::FinishExchange(int fragment) {
  const auto exchange = exchanges_.find(fragment);
  if (exchange == exchanges_.end()) return absl::OkStatus();
  RETURN_IF_ERROR(stage_->TakeAverage(exchange->second));
  exchanges_.erase(exchange);
  return stage_->local()->Update(fragment);
}

absl::Status ReplicaSteps::FinishExchanges() {
  while (!exchanges_.empty()) RETURN_IF_ERROR(FinishExchange(exchanges_.begin()->first));
  return absl::OkStatus();
}

absl::Status ReplicaSteps::Finish() {
  if (stage_->local() == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(stage_->local()->LoadShared());
  return FinishExchanges();
}

}  // namespace thinwire
