#include "coordinator/plan/state_plan.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "compress/codecs/axes.h"
#include "config/specs.h"
#include "coordinator/plan/table_text.h"
#include "models/tied_weight.h"

namespace thinwire {
namespace {

uint64_t RowsOf(StateKey key, const Experiment& experiment, uint64_t samples) {
  const uint64_t batch = std::min<uint64_t>(experiment.data().batch_size(), samples);
  const uint64_t microbatches = std::min<uint64_t>(experiment.pipeline().microbatches(), batch);
  switch (key) {
    case StateKey::kStream:
      return (batch + microbatches - 1) / microbatches;
    case StateKey::kSlot:
      return batch;
    case StateKey::kSample:
    case StateKey::kBatch:
      return samples;
  }
  return samples;
}

// A cut or the tied cut, and the stages on its two sides.
struct Crossing {
  std::string name;
  Shape sample;
  int before = 0, behind = 0;
  std::optional<uint64_t> rows;  // number of the weight's rows, at the tied cut only
};

std::vector<Crossing> CrossingsOf(const Partition& partition) {
  std::vector<Crossing> crossings;
  const int cuts = static_cast<int>(partition.cuts.size());
  for (int cut = 0; cut < cuts; ++cut) {
    const Cut& at = partition.cuts[cut];
    crossings.push_back({at.name, partition.model.blocks[at.block].out,
                         partition.placement.StageOf(cut), partition.placement.StageOf(cut + 1),
                         std::nullopt});
  }
  const std::optional<TiedWeight> tied = FindTiedWeight(partition.model);
  if (tied && cuts > 0) {
    crossings.push_back({kTiedCut, Shape{1, tied->shape[1]}, 0, partition.placement.StageOf(cuts),
                         static_cast<uint64_t>(tied->shape[0])});
  }
  return crossings;
}

std::string Megabytes(uint64_t bytes) { return absl::StrFormat("%.1f", bytes / 1e6); }

const char* DirectionName(const PlannedState& state) {
  return state.gradient ? "gradient" : "activation";
}

std::string WhatIsKept(const PlannedState& state) {
  return absl::StrCat(state.feedback.ToString(), state.feedback.dir.empty() ? "" : ", in a file",
                      state.axes_bytes > 0 ? "; principal axes" : "");
}

// Returns the bytes in memory at `stage`, or at all stages if `stage` is negative.
uint64_t MemoryOf(const PlannedState& state, int stage) {
  const StateBytes rows = state.feedback.dir.empty() ? state.bytes : StateBytes();
  uint64_t bytes = 0;
  if (stage < 0 || state.sender_stage == stage) bytes += rows.sender + state.axes_bytes;
  if (stage < 0 || state.receiver_stage == stage) bytes += rows.receiver + state.axes_bytes;
  return bytes;
}

absl::Status Refuse(const StatePlan& plan, int stage, uint64_t bytes, uint64_t machine_bytes) {
  const auto most = std::max_element(
      plan.directions.begin(), plan.directions.end(),
      [&](const auto& a, const auto& b) { return MemoryOf(a, stage) < MemoryOf(b, stage); });
  return absl::ResourceExhaustedError(absl::StrCat(
      "the state of feedback and principal axes takes ", Megabytes(bytes), " MB ",
      stage < 0 ? "at all stages together" : absl::StrCat("at stage ", stage), ", the machine has ",
      Megabytes(machine_bytes), " MB of memory; most of it, ", Megabytes(MemoryOf(*most, stage)),
      " MB, is the ", DirectionName(*most), " at cut ", most->boundary, ": ",
      most->feedback.ToString(), " with ", most->rows,
      " rows. Less memory take store q8 or q4, another key, limit_bytes with on_full plain, or "
      "dir"));
}

// Checks limit_bytes. Every epoch visits all rows, so a limit below their size would end the run in
// the first epoch.
absl::Status CheckLimit(const Experiment& experiment, const PlannedState& state,
                        const Shape& sample) {
  const FeedbackSpec& feedback = state.feedback;
  if (feedback.limit_bytes == 0 || feedback.on_full == OnFull::kPlain) return absl::OkStatus();
  FeedbackSpec unlimited = feedback;
  unlimited.limit_bytes = 0;
  const uint64_t wanted = StateBytesOf(unlimited, sample, state.rows).sender;
  if (wanted <= feedback.limit_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      DirectionPath(experiment, state.boundary, state.gradient),
      ".feedback.limit_bytes: ", feedback.limit_bytes, " with on_full error, want at least ",
      wanted, " for ", state.rows, " rows at cut ", state.boundary, ", or on_full plain"));
}

}  // namespace

absl::StatusOr<StatePlan> PlanState(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  ASSIGN_OR_RETURN(const uint64_t samples, TrainingSamples(experiment));
  StatePlan plan;
  plan.stage_memory_bytes.resize(partition.placement.stages);
  for (const Crossing& at : CrossingsOf(partition)) {
    for (bool gradient : {false, true}) {
      PlannedState state;
      const DirectionConfig& config = DirectionOf(experiment, at.name, gradient);
      ASSIGN_OR_RETURN(state.feedback, FeedbackFrom(config.feedback(), gradient));
      if (config.rotation() == "principal") {
        state.axes_bytes = Axes::StateBytes(ChannelsOf(at.sample));
      }
      if (state.feedback.kind == FeedbackKind::kNone && state.axes_bytes == 0) continue;
      state.boundary = at.name;
      state.gradient = gradient;
      if (state.feedback.kind != FeedbackKind::kNone) {
        state.rows = at.rows.value_or(RowsOf(state.feedback.key, experiment, samples));
      }
      state.sender_stage = gradient ? at.behind : at.before;
      state.receiver_stage = gradient ? at.before : at.behind;
      state.bytes = StateBytesOf(state.feedback, at.sample, state.rows);
      RETURN_IF_ERROR(CheckLimit(experiment, state, at.sample));
      plan.stage_memory_bytes[at.before] += MemoryOf(state, at.before);
      if (at.behind != at.before) plan.stage_memory_bytes[at.behind] += MemoryOf(state, at.behind);
      plan.directions.push_back(state);
    }
  }
  return plan;
}

absl::Status CheckMemory(const StatePlan& plan, uint64_t machine_bytes, bool one_machine) {
  const std::vector<uint64_t>& stages = plan.stage_memory_bytes;
  if (one_machine) {
    const uint64_t all = std::accumulate(stages.begin(), stages.end(), uint64_t{0});
    return all > machine_bytes ? Refuse(plan, -1, all, machine_bytes) : absl::OkStatus();
  }
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    if (stages[stage] > machine_bytes) {
      return Refuse(plan, static_cast<int>(stage), stages[stage], machine_bytes);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFolders(const StatePlan& plan) {
  for (const PlannedState& state : plan.directions) {
    const std::string& dir = state.feedback.dir;
    if (dir.empty() || access((dir + "/.").c_str(), W_OK | X_OK) == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("feedback.dir: ", dir, ": ", std::strerror(errno),
                     ", want a folder that can be written to, for the ", DirectionName(state),
                     " at cut ", state.boundary));
  }
  return absl::OkStatus();
}

uint64_t MachineMemoryBytes() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

std::string FormatState(const StatePlan& plan) {
  if (plan.directions.empty()) return "";
  std::string text = absl::StrFormat("\n%-10s %-10s %10s %12s %12s\n", "boundary", "direction",
                                     "rows", "sender MB", "receiver MB");
  std::vector<Described> feedback;
  for (const PlannedState& state : plan.directions) {
    const auto end = [](uint64_t bytes, int stage) {
      return bytes == 0 ? "-" : absl::StrCat(Megabytes(bytes), " @", stage);
    };
    absl::StrAppendFormat(&text, "%-10s %-10s %10d %12s %12s\n", state.boundary,
                          DirectionName(state), state.rows,
                          end(state.bytes.sender + state.axes_bytes, state.sender_stage),
                          end(state.bytes.receiver + state.axes_bytes, state.receiver_stage));
    feedback.push_back({state.boundary, DirectionName(state), WhatIsKept(state)});
  }
  std::string stages;
  for (size_t stage = 0; stage < plan.stage_memory_bytes.size(); ++stage) {
    absl::StrAppend(&stages, stage == 0 ? " " : ", ", "stage ", stage, " ",
                    Megabytes(plan.stage_memory_bytes[stage]), " MB");
  }
  return absl::StrCat(
      text, DescriptionLines(feedback),
      Wrapped("",
              absl::StrCat("State of feedback and axes once every row has been visited, @ at which "
                           "stage. In memory:",
                           stages, ".")));
}

}  // namespace thinwire
