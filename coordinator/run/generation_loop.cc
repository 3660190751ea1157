#include "coordinator/run/generation_loop.h"

#include <string>
#include <utility>

#include "base/status.h"
#include "coordinator/files/record.h"
#include "coordinator/files/summary.h"

namespace thinwire {
namespace {

RunEvent EventNow(const char* type, const std::optional<FoundCheckpoint>& from) {
  RunEvent event;
  event.set_type(type);
  event.set_time(UtcNow());
  event.set_step(from ? from->manifest.step() : 0);
  return event;
}

// Returns whether nothing is lost by the failure: servers are laid out otherwise, or were not all
// there to end a step.
bool LosesNothing(Failure::Kind kind) {
  return kind == Failure::Kind::kUnfit || kind == Failure::Kind::kSpeeds ||
         kind == Failure::Kind::kInterrupted;
}

const char* NameOf(Failure::Kind kind) {
  switch (kind) {
    case Failure::Kind::kDead:
      return "dead";
    case Failure::Kind::kSilent:
      return "silent";
    case Failure::Kind::kUnleased:
      return "unleased";
    case Failure::Kind::kEnds:
      return kReasonEnds;
    case Failure::Kind::kUnfit:
      return "unfit";
    case Failure::Kind::kJoins:
      return kReasonJoins;
    case Failure::Kind::kSpeeds:
      return kReasonSpeeds;
    case Failure::Kind::kInterrupted:
      return "interrupted";
    case Failure::Kind::kError:
      return "error";
  }
  return "";
}

}  // namespace

absl::Status GenerationLoop::Run(Fleet* fleet) {
  if (options_.from) {
    from_ = options_.from;
    *summary_.mutable_events() = from_->manifest.progress().events();
    RETURN_IF_ERROR(Tell(EventNow(kResumed, from_)));
  }
  for (;;) {
    const bool keeps_state = kept_step_ != nullptr;
    const absl::Status status = run_({fleet, from_ ? &*from_ : nullptr, lost_at_,
                                      keeps_state && lost_at_ ? &loss_ : nullptr, keeps_state});
    if (status.ok() || fleet->interrupted()) return status;
    const std::optional<Failure> loss = LossToMakeGood(fleet);
    if (!loss) return status;
    ASSIGN_OR_RETURN(fleet, GoOn(*loss, fleet));
  }
}

std::optional<Failure> GenerationLoop::LossToMakeGood(Fleet* fleet) {
  if (!options_.next_generation) return std::nullopt;
  // Training that ended after a whole step was asked to: by a stage that leaves, or by the user.
  if (fleet->ended_after_step()) return fleet->leaving();
  std::optional<Failure> cause = fleet->cause();
  if (!cause || !IsLoss(*cause)) return std::nullopt;
  // A stage that was never there cannot be lost; one that was started and died can.
  // Where the others go on with what they have, one that is lost meanwhile was there before.
  const bool was_there =
      fleet->acquired() || cause->kind == Failure::Kind::kDead || (kept_step_ && lost_at_);
  if (!was_there || fleet->interrupted()) return std::nullopt;
  if (!LosesNothing(cause->kind) && !MayGoOn()) return std::nullopt;
  return cause;
}

bool GenerationLoop::MayGoOn() {
  if (kept_step_ && restarts_.allows_any()) {
    const uint64_t step = kept_step_();
    if (std::exchange(step_of_loss_, step) < step) return true;
  }
  return restarts_.Allow(SteadyTime::Now());
}

absl::StatusOr<Fleet*> GenerationLoop::GoOn(const Failure& loss, const Fleet* fleet) {
  absl::StatusOr<FoundCheckpoint> found = NewestCheckpoint(options_.checkpoints);
  if (!found.ok() && !absl::IsNotFound(found.status())) return found.status();
  from_.reset();
  if (found.ok()) from_ = *std::move(found);
  RunEvent event = EventNow(kRestarted, from_);
  const bool is_none_lost = loss.kind == Failure::Kind::kJoins || LosesNothing(loss.kind);
  if (!is_none_lost) {
    event.set_stage(static_cast<uint32_t>(fleet->pipelines().PlaceOf(loss.stage).stage));
  }
  event.set_reason(NameOf(loss.kind));
  event.set_error(std::string(loss.status.message()));
  // The generation after a loss may end, for servers that are there, before it has told of the
  // loss.
  const bool is_told = !lost_at_ || summary_.events_size() > events_at_loss_;
  if (kept_step_ && is_none_lost && !is_told) return options_.next_generation(loss);
  lost_at_ = SteadyTime::Now();
  events_at_loss_ = summary_.events_size();
  if (kept_step_) {
    loss_ = event;
  } else {
    RETURN_IF_ERROR(Tell(event));
  }
  return options_.next_generation(loss);
}

absl::Status GenerationLoop::Tell(const RunEvent& event) {
  *summary_.add_events() = event;
  return observer_.OnEvent(event);
}

}  // namespace thinwire
