#include "coordinator/plan/layouts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "config/codec_config.h"
#include "config/codec_pair.h"
#include "config/derived.h"
#include "config/differences.h"
#include "config/replicas_spec.h"
#include "config/resolve.h"
#include "config/specs.h"
#include "config/yaml_message.h"
#include "models/tied_weight.h"

namespace thinwire {
namespace {

constexpr char kExactly[] = "none", kOfTheFile[] = "the file's";
// Codecs that are tried besides: one that most models bear, and one that sends few bits.
constexpr const char* kUsual[] = {"uniform(bits=8)", "ecsq(rate=2)"};

// Compression of cuts and of what replicas exchange; no codecs: the experiment's own.
struct Tried {
  std::string name;
  std::optional<CodecPair> codecs;
  bool is_own = false;  // True if they are the experiment's.
};

absl::Status SetTried(const Tried& tried, Experiment* experiment) {
  if (!tried.codecs) return absl::OkStatus();
  RETURN_IF_ERROR(
      SetCodecs(tried.codecs->activations, tried.codecs->gradients, /*cut=*/"", experiment));
  if (!experiment->has_replicas()) return absl::OkStatus();
  ReplicasConfig* const replicas = experiment->mutable_replicas();
  ASSIGN_OR_RETURN(*replicas->mutable_contributions(), ConfigOf(tried.codecs->gradients));
  replicas->clear_average();
  if (replicas->exchange() == Name(ReplicaExchange::kGather)) return absl::OkStatus();
  *replicas->mutable_average() = replicas->contributions();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tried>> CodecsToTry(const Experiment& experiment,
                                               const LayoutOptions& options) {
  std::vector<Tried> all;
  std::vector<std::string> texts = {kExactly};
  texts.insert(texts.end(), std::begin(kUsual), std::end(kUsual));
  texts.insert(texts.end(), options.codecs.begin(), options.codecs.end());
  std::set<std::string> names;
  for (const std::string& text : texts) {
    if (!names.insert(text).second) continue;
    const absl::StatusOr<CodecPair> pair = ParseCodecPair(text, options.parameters);
    if (!pair.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--codec: ", pair.status().message()));
    }
    all.push_back({text, *pair});
  }
  Experiment exact = experiment;
  RETURN_IF_ERROR(SetTried(all.front(), &exact));
  RETURN_IF_ERROR(Resolve(&exact));
  all.front().is_own = Differences(experiment, exact).empty();
  if (!all.front().is_own)
    all.insert(all.begin(), Tried{kOfTheFile, std::nullopt, /*is_own=*/true});
  return all;
}

// Returns whether layers of the model depend on its cuts.
bool HasBottleneck(const CompressionConfig& compression) {
  return compression.has_bottleneck() ||
         std::any_of(compression.boundaries().begin(), compression.boundaries().end(),
                     [](const auto& boundary) { return boundary.second.has_bottleneck(); });
}

// Leaves the cuts to Resolve, and what was said of single ones away.
void ForgetCuts(Experiment* experiment) {
  experiment->mutable_pipeline()->clear_cuts();
  auto& boundaries = *experiment->mutable_compression()->mutable_boundaries();
  const auto tied = boundaries.find(std::string(kTiedCut));
  const auto kept = tied == boundaries.end() ? std::nullopt : std::make_optional(tied->second);
  boundaries.clear();
  if (kept) boundaries[kTiedCut] = *kept;
}

// Returns the experiment in this layout; it must be resolved again.
Experiment LaidOut(const Experiment& experiment, uint32_t replicas, uint32_t stages) {
  Experiment laid_out = experiment;
  PipelineConfig* const pipeline = laid_out.mutable_pipeline();
  const uint32_t segments = pipeline->cuts(0) == kEmptyList ? 1 : pipeline->cuts_size() + 1;
  const bool are_open = IsDerived(experiment, "pipeline.cuts") || segments < stages;
  if (are_open && !HasBottleneck(experiment.compression())) ForgetCuts(&laid_out);
  if (IsDerived(experiment, "pipeline.slices")) pipeline->clear_slices();
  pipeline->set_stages(stages);
  if (replicas == 1) {
    laid_out.clear_replicas();
  } else {
    laid_out.mutable_replicas()->set_count(replicas);
  }
  return laid_out;
}

absl::StatusOr<std::set<int64_t>> MicrobatchesOf(const Experiment& experiment, uint32_t replicas,
                                                 const LayoutOptions& options) {
  const int64_t batch = experiment.data().batch_size();
  const int64_t own = experiment.pipeline().microbatches();
  const int64_t most = std::max<int64_t>(1, batch / replicas);
  std::set<int64_t> all;
  for (const int64_t count : options.microbatches) {
    if (count < 1 || count > batch) {
      return absl::InvalidArgumentError(
          absl::StrCat("--microbatches: ", count, ", want 1 to ", batch, ", the batch size"));
    }
    all.insert(std::min(count, most));
  }
  if (!all.empty()) return all;
  const int64_t in_batch = BatchMicrobatchesOf(experiment);
  for (const int64_t count : {own / 2, own, 2 * own, in_batch / replicas}) {
    all.insert(std::clamp<int64_t>(count, 1, most));
  }
  return all;
}

bool HasOwnShape(const Layout& layout, const Experiment& own) {
  return layout.replicas == ReplicasOf(own) && layout.stages == own.pipeline().stages() &&
         layout.experiment.pipeline().microbatches() == own.pipeline().microbatches();
}

// Adds a layout for each codec and number of microbatches.
absl::Status AddLayout(const Experiment& experiment, uint32_t replicas, uint32_t stages,
                       const std::vector<Tried>& codecs, const LayoutOptions& options,
                       Layouts* layouts) {
  ASSIGN_OR_RETURN(const std::set<int64_t> microbatches,
                   MicrobatchesOf(experiment, replicas, options));
  std::set<std::string> refused;
  for (const Tried& tried : codecs) {
    for (const int64_t count : microbatches) {
      Layout layout{replicas, stages, tried.name, LaidOut(experiment, replicas, stages)};
      layout.experiment.mutable_pipeline()->set_microbatches(static_cast<uint32_t>(count));
      RETURN_IF_ERROR(SetTried(tried, &layout.experiment));
      const absl::Status resolved = Resolve(&layout.experiment);
      if (!resolved.ok()) {
        if (!refused.insert(std::string(resolved.message())).second) continue;
        layouts->left_out.push_back(absl::StrCat("left out: ", replicas, " x ", stages, ", ",
                                                 tried.name, ": ", resolved.message()));
        continue;
      }
      layout.is_own = tried.is_own && HasOwnShape(layout, experiment);
      layout.other_microbatches =
          BatchMicrobatchesOf(layout.experiment) != BatchMicrobatchesOf(experiment);
      layouts->all.push_back(std::move(layout));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(const LayoutOptions& options) {
  const auto check = [](const char* flag, double value) {
    if (value >= 0 && std::isfinite(value)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": ", value, ", want a finite number of at least 0"));
  };
  RETURN_IF_ERROR(check("--memory_gb", options.memory_bytes / 1e9));
  if (!options.prices) return absl::OkStatus();
  RETURN_IF_ERROR(check("--price_hour", options.prices->of_hour));
  return check("--price_gb", options.prices->of_gigabyte);
}

// A plan of a layout, with an exchange every so many steps.
class Estimate {
 public:
  Estimate(const Layout& layout, const Plan& plan, int every, uint64_t steps_of_epoch)
      : layout_(layout),
        plan_(plan),
        step_(plan.steps.front()),
        every_(every),
        steps_(static_cast<double>(steps_of_epoch)) {}

  LayoutEstimate Of(const LayoutOptions& options) const {
    LayoutEstimate row;
    row.set_replicas(layout_.replicas);
    row.set_stages(layout_.stages);
    row.set_codec(layout_.codec);
    if (layout_.replicas > 1) row.set_every(static_cast<uint32_t>(every_));
    row.set_microbatches(layout_.experiment.pipeline().microbatches());
    row.set_own(layout_.is_own && every_ == plan_.exchange.every);
    row.set_learns_otherwise(plan_.batch_norm && layout_.other_microbatches);
    row.set_step_seconds(Seconds());
    row.set_samples_per_second(static_cast<double>(plan_.batch_size) / Seconds());
    row.set_wire_bytes(static_cast<uint64_t>(StepWireBytes(plan_, Exchanges())));
    row.set_machine_wire_bytes(static_cast<uint64_t>(MachineWireBytes(plan_, Exchanges())));
    row.set_memory_bytes(static_cast<uint64_t>(MemoryBytes()));
    row.set_fits(static_cast<double>(MemoryBytes()) <= options.memory_bytes);
    row.set_limit(row.fits() ? Limit() : "memory");
    row.set_epoch_seconds(steps_ * Seconds());
    if (options.prices) row.set_epoch_cost(Cost(*options.prices));
    return row;
  }

 private:
  // Returns how many exchanges there are for each step. An epoch ends with one.
  double Exchanges() const { return std::ceil(steps_ / every_) / steps_; }
  double WithoutExchange() const {
    return step_.seconds() - step_.exposed_seconds() / plan_.exchange.every;
  }
  double Exposed() const { return Exchanges() * step_.exposed_seconds(); }
  double Seconds() const { return WithoutExchange() + Exposed(); }

  // Returns the memory of the machine that needs most. For local steps it also keeps what the
  // replicas had in common last, and the momentum of the outer optimizer.
  int64_t MemoryBytes() const {
    if (every_ == 1) return LargestMemoryBytes(plan_);
    Plan local = plan_;
    for (PlannedStage& stage : local.stages) {
      stage.memory_bytes += 2 * static_cast<int64_t>(sizeof(float)) * stage.parameters;
    }
    return LargestMemoryBytes(local);
  }

  // Returns what takes most of a step.
  const char* Limit() const {
    const double cuts = WithoutExchange() - plan_.compute_seconds;
    if (Exposed() > std::max(cuts, plan_.compute_seconds)) return "exchange";
    return cuts > plan_.compute_seconds ? "cuts" : "compute";
  }

  double Cost(const Prices& prices) const {
    const double machines = layout_.replicas * layout_.stages;
    const double hours = steps_ * Seconds() / 3600;
    const double bytes =
        steps_ * static_cast<double>(StepWireBytes(plan_, Exchanges())) / kPayloadShare;
    return machines * hours * prices.of_hour + bytes / 1e9 * prices.of_gigabyte;
  }

  const Layout& layout_;
  const Plan& plan_;
  const StepEstimate& step_;
  const int every_;
  const double steps_;  // of an epoch
};

// Orders by whether it fits, then by price or time, then by bytes.
bool IsBetter(const LayoutEstimate& a, const LayoutEstimate& b) {
  const auto key = [](const LayoutEstimate& one) {
    return std::make_tuple(!one.fits(), one.epoch_cost(), one.step_seconds(), one.wire_bytes());
  };
  return key(a) < key(b);
}

}  // namespace

absl::StatusOr<Layouts> LayoutsFor(const Experiment& experiment, const LayoutOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(const std::vector<Tried> codecs, CodecsToTry(experiment, options));
  Layouts layouts;
  for (int replicas = 1; replicas <= options.machines; ++replicas) {
    if (options.machines % replicas != 0) continue;
    RETURN_IF_ERROR(AddLayout(experiment, static_cast<uint32_t>(replicas),
                              static_cast<uint32_t>(options.machines / replicas), codecs, options,
                              &layouts));
  }
  if (!layouts.all.empty()) return layouts;
  return absl::InvalidArgumentError(
      absl::StrCat("--machines: ", options.machines, ": ", layouts.left_out.front()));
}

absl::StatusOr<std::vector<LayoutEstimate>> RankedLayouts(const std::vector<Layout>& layouts,
                                                          const LayoutOptions& options,
                                                          const PlanAssumptions& assumptions,
                                                          const Speeds& speeds) {
  using Key = std::tuple<uint32_t, uint32_t, std::string, int>;
  std::map<Key, LayoutEstimate> best;  // of all numbers of microbatches
  PlanAssumptions assumed = assumptions;
  assumed.carriers = 0;
  for (const Layout& layout : layouts) {
    ASSIGN_OR_RETURN(const Plan plan, MakePlan(layout.experiment, assumed, speeds));
    ASSIGN_OR_RETURN(const uint64_t steps, TrainingSteps(layout.experiment));
    for (const int every : {1, kLocalSteps}) {
      if (every > 1 && layout.replicas == 1) continue;
      const LayoutEstimate row =
          Estimate(layout, plan, every, steps / layout.experiment.epochs()).Of(options);
      const Key key{layout.replicas, layout.stages, layout.codec, every};
      const auto [place, is_new] = best.emplace(key, row);
      if (!is_new && IsBetter(row, place->second)) place->second = row;
    }
  }
  std::vector<LayoutEstimate> ranked;
  for (auto& [key, row] : best) ranked.push_back(std::move(row));
  std::stable_sort(ranked.begin(), ranked.end(), IsBetter);
  return ranked;
}

}  // namespace thinwire
