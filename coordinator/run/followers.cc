#include "coordinator/run/followers.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/steady_time.h"
#include "coordinator/run/kept_state.h"

namespace thinwire {
namespace {

constexpr absl::Duration kLookEvery = absl::Milliseconds(50);

}  // namespace

Followers::Followers(Fleet* fleet, Start start, const RunPlan& plan, StepOfRun step_of_run,
                     Take take)
    : fleet_(*fleet),
      start_(std::move(start)),
      plan_(plan),
      step_of_run_(std::move(step_of_run)),
      take_(std::move(take)) {
  fleet_.SetApart();
  std::vector<StageClient*> servers;
  for (int i = 0; i < fleet_.size(); ++i) {
    if (!fleet_.Follows(i)) continue;
    servers.push_back(&fleet_.server(i));
    done_[servers.back()->carrier()] = start_.step;
  }
  for (StageClient* const server : servers) threads_.emplace_back([=] { Follow(server); });
}

Followers::~Followers() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_over_ = true;
  }
  for (int i = 0; i < fleet_.size(); ++i) {
    if (fleet_.Follows(i)) fleet_.server(i).Cancel();
  }
  for (std::thread& thread : threads_) thread.join();
}

void Followers::Follow(StageClient* stage) {
  const absl::Status status = Train(stage);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const bool is_ended = std::exchange(is_over_, !status.ok() || is_over_);
    changed_.notify_all();
    if (status.ok() || is_ended) return;
  }
  const absl::Status of_run = fleet_.OfGuest(stage->server(), status);
  fleet_.Fail({stage->server(), Failure::Kind::kError, of_run});
}

absl::Status Followers::Train(StageClient* stage) {
  const auto server = static_cast<size_t>(stage->server());
  const int source = server < start_.sources.size() ? start_.sources[server] : -1;
  if (source >= 0) RETURN_IF_ERROR(FetchKeptState(source, start_.step, &fleet_, stage));
  for (uint64_t step = start_.step; step < plan_.steps();) {
    TrainRequest request;
    request.set_epoch(plan_.EpochOf(step + 1));
    request.set_samples(plan_.train_samples);
    request.set_first_step(step + 1);
    step = plan_.EndOf(request.epoch());
    request.set_last_step(step);
    RETURN_IF_ERROR(stage->Train(request, [&](const StageEvent& event) -> absl::Status {
      RETURN_IF_ERROR(take_(stage->server(), event));
      if (event.has_step()) HasDone(stage->carrier(), event.step().step());
      return absl::OkStatus();
    }));
  }
  return absl::OkStatus();
}

uint64_t Followers::FirstMissing() const {
  uint64_t least = plan_.steps();
  for (const auto& [carrier, step] : done_) least = std::min(least, step);
  return least + 1;
}

void Followers::HasDone(int carrier, uint64_t step) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    done_[carrier] = step;
    changed_.notify_all();
    if (FirstMissing() < step_of_run_()) return;
  }
  EndAfterStep("pipelines that followed have caught up");
}

void Followers::Check(uint64_t step) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (step < FirstMissing() + start_.most_behind) return;
  }
  EndAfterStep("pipelines that follow are too far behind, and all wait for them");
}

void Followers::EndAfterStep(const char* why) {
  fleet_.EndAfterStep({/*stage=*/0, Failure::Kind::kSpeeds, absl::UnavailableError(why)});
}

bool Followers::Await(uint64_t step) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!is_over_ && FirstMissing() <= step) {
    lock.unlock();
    const bool is_to_end =
        !fleet_.leaving() || fleet_.has_failed() || fleet_.is_interruption_handed_over();
    lock.lock();
    if (is_to_end) return false;
    changed_.wait_until(lock, (SteadyTime::Now() + kLookEvery).chrono());
  }
  return !is_over_;
}

}  // namespace thinwire
