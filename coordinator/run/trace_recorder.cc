#include "coordinator/run/trace_recorder.h"

#include <algorithm>

#include "base/steady_clock_id.h"
#include "base/steady_time.h"
#include "config/boundaries.h"
#include "config/kept.h"
#include "config/specs.h"
#include "config/stash.h"
#include "config/tensor_parts.h"
#include "models/part_rounds.h"

namespace thinwire {
namespace {

constexpr int kReadings = 16;  // clock readings with each report
constexpr absl::Duration kReadingPatience = absl::Seconds(2);

// Returns how many sums the parts of all layers make of a microbatch in a pass.
uint32_t SumsOfParts(const Experiment& experiment) {
  const absl::StatusOr<Model> model = ModelFrom(experiment);
  if (PartsOf(experiment) == 1 || !model.ok()) return 0;
  size_t sums = 0;
  for (const BlockSpec& block : model->blocks) sums += LayersWithRounds(block).size();
  return static_cast<uint32_t>(sums) * PartsOf(experiment);
}

// Returns how many blocks of a microbatch have something in a stash, and wait elsewhere with it.
uint32_t StashedBlocks(const Experiment& experiment) {
  const auto cuts = static_cast<uint32_t>(CutNames(experiment).size());
  const absl::StatusOr<Model> model = ModelFrom(experiment);
  const auto blocks = model.ok() ? static_cast<uint32_t>(model->blocks.size()) : 0;
  const uint32_t swapped = Swaps(experiment) ? blocks : 0;
  if (experiment.pipeline().has_stash()) return blocks + swapped;
  return (KeepsPayloads(experiment) ? cuts : 0) + swapped;
}

}  // namespace

RunTrace EmptyTrace(const Experiment& experiment, const Pipelines& pipelines,
                    const std::string& run, const TraceSteps& steps) {
  RunTrace trace;
  trace.run = run;
  trace.schedule = experiment.pipeline().schedule();
  trace.microbatches = ReplicasOf(experiment) * UnitsOf(experiment);
  trace.cuts = CutNames(experiment);
  trace.sums = SumsOfParts(experiment);
  trace.stashed = StashedBlocks(experiment);
  trace.steps = steps;
  trace.carriers = static_cast<uint32_t>(pipelines.carriers());
  trace.stages.resize(static_cast<size_t>(pipelines.servers()));
  return trace;
}

bool TraceRecorder::Add(int stage, const TraceReport& report, Fleet* fleet) {
  {
    absl::MutexLock lock(&mutex_);
    StageTrace& kept = trace_.stages[stage];
    kept.dropped += report.dropped();
    uint64_t of_device = std::count_if(kept.slices.begin(), kept.slices.end(), IsOfDevice);
    uint64_t of_threads = kept.slices.size() - of_device;
    for (const TraceSlice& slice : report.slices()) {
      const bool has_room =
          IsOfDevice(slice) ? of_device++ < kMostDeviceSlices : of_threads++ < kMostSlices;
      if (has_room) {
        kept.slices.push_back(slice);
      } else {
        ++kept.dropped;
      }
    }
  }
  ReadClock(stage, fleet);
  absl::MutexLock lock(&mutex_);
  return !has_told_ && (has_told_ = IsComplete());
}

bool TraceRecorder::IsComplete() const {
  for (size_t i = 0; i < readings_.size(); ++i) {
    const std::vector<TraceSlice>& slices = trace_.stages[i].slices;
    const bool has_ended =
        std::any_of(slices.rbegin(), slices.rend(), [this](const TraceSlice& slice) {
          return slice.name() == "step" && slice.step() == empty_.steps.last();
        });
    if (!has_ended || readings_[i].empty()) return false;
  }
  return true;
}

void TraceRecorder::ReadClock(int stage, Fleet* fleet) {
  const std::string own_clock = SteadyClockId();
  for (int i = 0; i < kReadings; ++i) {
    const int64_t asked = SteadyTime::Now().nanoseconds();
    const absl::StatusOr<RenewResponse> answer = fleet->Renew(stage, kReadingPatience);
    const int64_t came = SteadyTime::Now().nanoseconds();
    if (!answer.ok() || answer->clock().empty()) return;
    // A stage that reads the same clock has the offset 0 exactly, so one reading is enough.
    const bool is_own = answer->clock() == own_clock;
    absl::MutexLock lock(&mutex_);
    readings_[stage].push_back(is_own ? ClockReading{0, 0, 0}
                                      : ClockReading{asked, answer->steady_nanoseconds(), came});
    if (is_own) return;
  }
}

void TraceRecorder::RestartAfter(uint64_t step) {
  if (step >= empty_.steps.last()) return;
  absl::MutexLock lock(&mutex_);
  trace_ = empty_;
  has_told_ = false;
  trace_.steps.set_first(std::max(empty_.steps.first(), step + 1));
  for (std::vector<ClockReading>& readings : readings_) readings.clear();
}

RunTrace TraceRecorder::Upto(uint64_t step) const {
  RunTrace trace;
  {
    absl::MutexLock lock(&mutex_);
    trace = trace_;
    for (size_t i = 0; i < trace.stages.size(); ++i) {
      StageTrace& stage = trace.stages[i];
      if (!readings_[i].empty()) {
        stage.clock = EstimateOffset(readings_[i]);
      } else {
        stage.dropped += stage.slices.size();
        stage.slices.clear();
      }
    }
  }
  trace.steps.set_last(std::min(trace.steps.last(), step));
  Align(&trace);
  return trace;
}

}  // namespace thinwire
