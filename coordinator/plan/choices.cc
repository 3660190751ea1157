#include "coordinator/plan/choices.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "config/codec_pair.h"
#include "config/derived.h"
#include "config/resolve.h"
#include "config/specs.h"
#include "coordinator/plan/table_text.h"

namespace thinwire {
namespace {

constexpr char kNone[] = "none", kOwn[] = "the file's";

// One compression of an experiment, under the name that the table shows.
struct Compression {
  std::string name;
  std::string flag;  // its origin, for errors
  CompressionConfig config;
  bool is_own = false;
};

bool SendsAllExactly(const Experiment& experiment) {
  const auto is_exact = [&](const DirectionConfig& direction) {
    const absl::StatusOr<CodecSpec> codec = CodecFrom(direction);
    return codec.ok() && codec->is_exact();
  };
  const CompressionConfig& compression = experiment.compression();
  bool all = is_exact(compression.activations()) && is_exact(compression.gradients());
  for (const auto& [cut, own] : compression.boundaries()) {
    all = all && (!own.has_activations() || is_exact(own.activations()));
    all = all && (!own.has_gradients() || is_exact(own.gradients()));
  }
  return all;
}

absl::StatusOr<std::vector<Compression>> Compressions(const Experiment& experiment,
                                                      const ChoiceOptions& options) {
  std::vector<Compression> all;
  const bool is_plain = SendsAllExactly(experiment);
  all.push_back({is_plain ? kNone : kOwn, "compression", experiment.compression(), true});
  std::vector<std::string> texts = options.codecs;
  if (!is_plain) texts.insert(texts.begin(), kNone);
  std::set<std::string> names;
  for (const std::string& text : texts) {
    if ((is_plain && text == kNone) || !names.insert(text).second) continue;
    const absl::StatusOr<CodecPair> pair = ParseCodecPair(text, options.parameters);
    if (!pair.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--codec: ", pair.status().message()));
    }
    Experiment other = experiment;
    RETURN_IF_ERROR(SetCodecs(pair->activations, pair->gradients, /*cut=*/"", &other));
    all.push_back({text, absl::StrCat("--codec ", text), other.compression(), false});
  }
  return all;
}

absl::StatusOr<std::vector<int64_t>> Microbatches(const Experiment& experiment,
                                                  const ChoiceOptions& options) {
  const uint32_t replicas = ReplicasOf(experiment);
  const int64_t own = experiment.pipeline().microbatches();
  const int64_t batch = experiment.data().batch_size() / replicas;
  std::vector<int64_t> all = options.microbatches;
  for (const int64_t count : all) {
    if (count >= 1 && count <= batch) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--microbatches: ", count, ", want 1 to ", batch, ", the ",
                     replicas == 1 ? "batch size" : "samples of a replica"));
  }
  if (all.empty()) all = {std::max<int64_t>(own / 2, 1), own, std::min(2 * own, batch)};
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// Clears slices that the user did not give: they are derived again, as they depend on the
// microbatches.
void SetSchedule(const TriedSchedule& tried, Experiment* experiment) {
  PipelineConfig* const pipeline = experiment->mutable_pipeline();
  const std::string schedule = Name(tried.kind);
  const bool are_open = IsDerived(*experiment, "pipeline.slices");
  if (are_open || schedule != pipeline->schedule() || !tried.slices.empty()) {
    pipeline->clear_slices();
  }
  pipeline->set_schedule(schedule);
  if (!tried.slices.empty()) pipeline->add_slices(tried.slices);
}

// Returns all schedules that fit. Interleaved ones need enough cuts for several segments a stage;
// sliced ones need a model and a training that can use slices.
std::vector<TriedSchedule> SchedulesOf(const Experiment& experiment) {
  std::vector<TriedSchedule> had;
  for (const ScheduleKind schedule : AllOf<ScheduleKind>()) {
    Experiment other = experiment;
    SetSchedule({schedule}, &other);
    if (Slices(schedule) && !Resolve(&other).ok()) continue;
    if (Interleaves(schedule)) {
      const absl::StatusOr<Partition> partition = PartitionFrom(other);
      if (!partition.ok() || partition->placement.chunks_per_stage() == 1) continue;
    }
    had.push_back({schedule});
  }
  return had;
}

std::string Spelled(const TriedSchedule& tried) {
  return tried.slices.empty() ? Name(tried.kind)
                              : absl::StrCat(Name(tried.kind), ":", tried.slices);
}

// Names the schedule with its slices, if it has any: the user's word, or what the resolved
// experiment got.
std::string Spelled(const TriedSchedule& tried, const PipelineConfig& resolved) {
  TriedSchedule had = tried;
  if (had.slices.empty() && resolved.slices_size() == 1) had.slices = resolved.slices(0);
  if (had.slices.empty() && resolved.slices_size() > 1) had.slices = "auto";
  return Spelled(had);
}

absl::StatusOr<Candidate> CandidateOf(const Experiment& experiment, const Compression& compression,
                                      int64_t microbatches, const TriedSchedule& tried) {
  const PipelineConfig& own = experiment.pipeline();
  Candidate candidate;
  candidate.codec = compression.name;
  candidate.experiment = experiment;
  candidate.other_microbatches = microbatches != own.microbatches();
  *candidate.experiment.mutable_compression() = compression.config;
  candidate.experiment.mutable_pipeline()->set_microbatches(static_cast<uint32_t>(microbatches));
  SetSchedule(tried, &candidate.experiment);
  RETURN_IF_ERROR(Resolve(&candidate.experiment));
  const PipelineConfig& resolved = candidate.experiment.pipeline();
  candidate.schedule = Spelled(tried, resolved);
  candidate.is_own = compression.is_own && !candidate.other_microbatches &&
                     resolved.schedule() == own.schedule() &&
                     absl::c_equal(resolved.slices(), own.slices());
  return candidate;
}

}  // namespace

absl::StatusOr<TriedSchedule> ScheduleToTry(const std::string& text) {
  const size_t colon = text.find(':');
  TriedSchedule tried;
  RETURN_IF_ERROR(FromName(text.substr(0, colon), &tried.kind));
  if (colon == std::string::npos) return tried;
  tried.slices = text.substr(colon + 1);
  uint32_t count = 0;
  const bool is_count = absl::SimpleAtoi(tried.slices, &count) && count > 0;
  if (Slices(tried.kind) && (is_count || tried.slices == "auto")) return tried;
  return absl::InvalidArgumentError(
      absl::StrCat("schedule: ", text, ", want ", Name(tried.kind),
                   Slices(tried.kind) ? ":N with N slices, or :auto" : ""));
}

absl::StatusOr<Candidates> CandidatesFor(const Experiment& experiment,
                                         const ChoiceOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<Compression> compressions, Compressions(experiment, options));
  ASSIGN_OR_RETURN(const std::vector<int64_t> microbatches, Microbatches(experiment, options));
  const std::vector<TriedSchedule> schedules =
      options.schedules.empty() ? SchedulesOf(experiment) : options.schedules;
  Candidates candidates;
  for (const Compression& compression : compressions) {
    absl::Status refused;
    const size_t before = candidates.all.size();
    for (const int64_t count : microbatches) {
      for (const TriedSchedule& schedule : schedules) {
        auto candidate = CandidateOf(experiment, compression, count, schedule);
        if (candidate.ok()) {
          candidates.all.push_back(*std::move(candidate));
          continue;
        }
        refused.Update(candidate.status());
        candidates.left_out.push_back(absl::StrFormat("left out: %s in %d microbatches, %s: %s",
                                                      compression.name, count, Spelled(schedule),
                                                      candidate.status().message()));
      }
    }
    if (candidates.all.size() > before) continue;
    return absl::InvalidArgumentError(absl::StrCat(compression.flag, ": ", refused.message()));
  }
  return candidates;
}

absl::StatusOr<std::vector<ChoiceEstimate>> RankedChoices(const std::vector<Candidate>& candidates,
                                                          const PlanAssumptions& assumptions,
                                                          const Speeds& speeds) {
  std::vector<ChoiceEstimate> choices;
  for (const Candidate& candidate : candidates) {
    ASSIGN_OR_RETURN(const Plan plan, MakePlan(candidate.experiment, assumptions, speeds));
    ChoiceEstimate choice;
    choice.set_codec(candidate.codec);
    choice.set_schedule(candidate.schedule);
    choice.set_microbatches(static_cast<uint32_t>(plan.microbatches));
    choice.set_own(candidate.is_own);
    choice.set_learns_otherwise(plan.batch_norm && candidate.other_microbatches);
    choice.set_step_seconds(plan.steps.front().seconds());
    choice.set_samples_per_second(plan.steps.front().samples_per_second());
    choice.set_bubble_ratio(plan.steps.front().bubble_ratio());
    choice.set_wire_bytes(static_cast<uint64_t>(StepWireBytes(plan)));
    choice.set_memory_bytes(static_cast<uint64_t>(LargestMemoryBytes(plan)));
    choices.push_back(std::move(choice));
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [](const ChoiceEstimate& a, const ChoiceEstimate& b) {
                     return std::make_pair(a.step_seconds(), a.wire_bytes()) <
                            std::make_pair(b.step_seconds(), b.wire_bytes());
                   });
  return choices;
}

std::string FormatChoices(const std::vector<ChoiceEstimate>& choices,
                          const std::vector<std::string>& left_out) {
  std::string text = absl::StrFormat("\n%8s %9s %8s %7s %6s %5s %-13s %s\n", "step ms", "samples/s",
                                     "wire MB", "mem. MB", "bubble", "parts", "sched.", "codec");
  bool learns_otherwise = false, has_own = false;
  for (const ChoiceEstimate& choice : choices) {
    learns_otherwise = learns_otherwise || choice.learns_otherwise();
    has_own = has_own || choice.own();
    text += Wrapped(
        absl::StrFormat("%c%7.1f %9.0f %8.2f %7.1f %4.0f %% %4d%c %-13s ", choice.own() ? '>' : ' ',
                        1e3 * choice.step_seconds(), choice.samples_per_second(),
                        choice.wire_bytes() / 1e6, choice.memory_bytes() / 1e6,
                        100 * choice.bubble_ratio(), choice.microbatches(),
                        choice.learns_otherwise() ? '*' : ' ', choice.schedule()),
        choice.codec());
  }
  std::string note =
      "Fastest first. Parts: microbatches of a replica. Wire: what a step sends, likely. Memory: "
      "of the stage that takes most.";
  if (has_own) note += " > is the experiment as it stands.";
  text += Wrapped("", note);
  if (learns_otherwise) {
    text += Wrapped("",
                    "* Batch norm normalises each microbatch by itself: with another number of "
                    "them the model learns something else, and its accuracy may differ.");
  }
  for (const std::string& line : left_out) text += Wrapped("", line);
  return text;
}

}  // namespace thinwire
