#include "coordinator/run/members_recorder.h"

#include <utility>

#include "coordinator/files/summary.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"

namespace thinwire {
namespace {

using prometheus::Counter;
using prometheus::Gauge;

// Returns how long the run did not train because of its members, since it began or was resumed.
double SecondsLost(const Summary& summary) {
  double seconds = 0;
  for (const RunEvent& event : summary.events()) {
    if (event.type() == kResumed) {
      seconds = 0;
    } else if (HasGoneOn(event) || event.type() == kRestarted) {
      seconds += event.seconds();
    }
  }
  return seconds;
}

void Raise(double value, Counter* counter) {
  const double more = value - counter->Value();
  if (more > 0) counter->Increment(more);
}

}  // namespace

struct MembersRecorder::Series {
  Series(prometheus::Registry* registry, const std::string& run)
      : members(prometheus::BuildGauge()
                    .Name("thinwire_members")
                    .Help("Servers that carry a stage, stand by, or are away")
                    .Register(*registry)),
        changes(prometheus::BuildCounter()
                    .Name("thinwire_member_changes_total")
                    .Help("Servers that joined, left in order, or were lost")
                    .Register(*registry)),
        carry(members.Add({{"run", run}, {"state", "carry"}})),
        idle(members.Add({{"run", run}, {"state", "idle"}})),
        away(members.Add({{"run", run}, {"state", "away"}})),
        joined(changes.Add({{"run", run}, {"kind", "joined"}})),
        left(changes.Add({{"run", run}, {"kind", "left"}})),
        lost(changes.Add({{"run", run}, {"kind", "lost"}})),
        repeated_steps(prometheus::BuildCounter()
                           .Name("thinwire_repeated_steps_total")
                           .Help("Steps that were done again, as a server was lost")
                           .Register(*registry)
                           .Add({{"run", run}})),
        lost_seconds(prometheus::BuildCounter()
                         .Name("thinwire_members_lost_seconds_total")
                         .Help("Seconds without training, as servers came and went or replicas were dealt anew")
                         .Register(*registry)
                         .Add({{"run", run}})) {}

  prometheus::Family<Gauge>& members;
  prometheus::Family<Counter>& changes;
  Gauge &carry, &idle, &away;
  Counter &joined, &left, &lost, &repeated_steps, &lost_seconds;
};

MembersRecorder::MembersRecorder(const std::string& run, Counts counts,
                                 prometheus::Registry* registry, Summary* summary)
    : run_(run), counts_(std::move(counts)), registry_(*registry), summary_(*summary) {}

MembersRecorder::~MembersRecorder() = default;

absl::Status MembersRecorder::OnStart(const RunPlan&) { return Update(); }

absl::Status MembersRecorder::OnTotals(const RunTotals&) { return Update(); }

absl::Status MembersRecorder::OnStep(const StepRecord& step) {
  last_step_ = step.step();
  // The event tells now how long it took.
  return std::exchange(is_interrupted_, false) ? Update() : absl::OkStatus();
}

absl::Status MembersRecorder::OnEvent(const RunEvent& event) {
  if (!HasGoneOn(event) && event.type() != kRestarted) return absl::OkStatus();
  is_interrupted_ = true;
  if (last_step_ > event.step()) repeated_steps_ += last_step_ - event.step();
  last_step_ = event.step();
  // A loss comes within a step, which is begun again.
  if (event.has_stage() && event.reason() != kReasonEnds) ++repeated_steps_;
  return Update();
}

absl::Status MembersRecorder::Update() {
  const std::optional<MemberCounts> counts = counts_();
  if (!counts) return absl::OkStatus();
  if (series_ == nullptr) series_ = std::make_unique<Series>(&registry_, run_);
  series_->carry.Set(counts->carrying);
  series_->idle.Set(counts->idle);
  series_->away.Set(counts->away);
  MembersRecord* const record = summary_.mutable_members();
  record->set_joined(static_cast<uint32_t>(counts->joined));
  record->set_left(static_cast<uint32_t>(counts->left));
  record->set_lost(static_cast<uint32_t>(counts->lost));
  record->set_repeated_steps(repeated_steps_);
  record->set_seconds_lost(SecondsLost(summary_));
  Raise(record->joined(), &series_->joined);
  Raise(record->left(), &series_->left);
  Raise(record->lost(), &series_->lost);
  Raise(static_cast<double>(record->repeated_steps()), &series_->repeated_steps);
  Raise(record->seconds_lost(), &series_->lost_seconds);
  return absl::OkStatus();
}

}  // namespace thinwire
