#include "coordinator/plan/layouts.h"

#include <algorithm>
#include <cmath>
#include <iterator>
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
#include "config/experiment.h"
#include "config/replicas_spec.h"
#include "config/resolve.h"
#include "config/specs.h"
#include "config/tensor_parts.h"
#include "config/yaml_message.h"
#include "models/parts.h"
#include "models/tied_weight.h"

namespace thinwire {
namespace {

constexpr char kExactly[] = "none", kOfTheFile[] = "the file's";
// Codecs that are tried besides: one that most models bear, and one that sends few bits.
constexpr const char* kUsual[] = {"uniform(bits=8)", "ecsq(rate=2)"};

// Compression of cuts, of sums over parts and of what replicas exchange; no codecs: the
// experiment's own.
struct Tried {
  std::string name;
  std::optional<CodecPair> codecs;
  bool is_own = false;  // True if they are the experiment's.
};

absl::Status SetTried(const Tried& tried, Experiment* experiment) {
  if (!tried.codecs) return absl::OkStatus();
  RETURN_IF_ERROR(
      SetCodecs(tried.codecs->activations, tried.codecs->gradients, /*cut=*/"", experiment));
  if (PartsOf(*experiment) > 1) {
    SumsConfig* const sums = experiment->mutable_compression()->mutable_sums();
    ASSIGN_OR_RETURN(*sums->mutable_activations(), ConfigOf(tried.codecs->activations));
    ASSIGN_OR_RETURN(*sums->mutable_gradients(), ConfigOf(tried.codecs->gradients));
  }
  if (!experiment->has_replicas()) return absl::OkStatus();
  ReplicasConfig* const replicas = experiment->mutable_replicas();
  ASSIGN_OR_RETURN(*replicas->mutable_contributions(), ConfigOf(tried.codecs->gradients));
  replicas->clear_average();
  replicas->clear_stages();
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
  if (all.front().is_own) return all;
  all.insert(all.begin(), Tried{kOfTheFile, std::nullopt, /*is_own=*/true});
  return all;
}

// Returns whether layers of the model depend on its cuts.
bool HasBottleneck(const CompressionConfig& compression) {
  return compression.has_bottleneck() ||
         std::any_of(compression.boundaries().begin(), compression.boundaries().end(),
                     [](const auto& boundary) { return boundary.second.has_bottleneck(); });
}

// Leaves the cuts to Resolve, and away what was said of single ones. A weight is tied across cuts
// if there are several stages.
void ForgetCuts(uint32_t stages, Experiment* experiment) {
  experiment->mutable_pipeline()->clear_cuts();
  if (experiment->has_replicas()) experiment->mutable_replicas()->clear_stages();
  auto& boundaries = *experiment->mutable_compression()->mutable_boundaries();
  std::optional<BoundaryConfig> tied;
  const auto found = boundaries.find(std::string(kTiedCut));
  const std::string path = absl::StrCat("compression.boundaries.", kTiedCut);
  if (found != boundaries.end() && stages > 1 && !IsDerived(*experiment, path)) {
    tied = found->second;
  }
  boundaries.clear();
  if (tied) boundaries[kTiedCut] = *tied;
}

// Makes replicas exchange every step, or every `every` steps if that is above 0.
void SetSync(uint32_t every, ReplicasConfig* replicas) {
  if (every > 0 && replicas->sync() == Name(ReplicaSync::kLocal)) return;
  replicas->clear_every();
  replicas->clear_outer();
  replicas->clear_fragments();
  replicas->clear_overlap();
  replicas->clear_mix();
  replicas->set_sync(Name(every > 0 ? ReplicaSync::kLocal : ReplicaSync::kStep));
  if (every > 0) replicas->set_every(every);
}

// Returns the local steps to try: the experiment's own, if it has any.
std::vector<uint32_t> LocalStepsToTry(const Experiment& experiment) {
  const ReplicasConfig& replicas = experiment.replicas();
  if (replicas.sync() == Name(ReplicaSync::kLocal)) return {replicas.every()};
  return {std::begin(kLocalSteps), std::end(kLocalSteps)};
}

// Divides the model into so many parts, or into none.
void SetParts(uint32_t parts, Experiment* experiment) {
  if (parts > 1) return experiment->mutable_tensor()->set_parts(parts);
  experiment->clear_tensor();
  experiment->mutable_compression()->clear_sums();
}

// Returns the numbers of parts to try, without those that do not divide the model; of these
// `left_out` gets a line each.
absl::StatusOr<std::vector<uint32_t>> PartsToTry(const Experiment& experiment,
                                                 const LayoutOptions& options,
                                                 std::vector<std::string>* left_out) {
  std::set<int64_t> asked(options.parts.begin(), options.parts.end());
  for (int64_t count = 1; options.parts.empty() && count <= options.machines; ++count) {
    const bool has_say = count == 1 || PartsOf(experiment) > 1;
    if (has_say && options.machines % count == 0) asked.insert(count);
  }
  Experiment whole = experiment;
  SetParts(1, &whole);
  ASSIGN_OR_RETURN(const Model model, ModelFrom(whole));
  std::vector<uint32_t> parts;
  for (const int64_t count : asked) {
    if (count < 1 || options.machines % count != 0) {
      return absl::InvalidArgumentError(absl::StrCat("--parts: ", count, ", want divisors of ",
                                                     options.machines, ", the machines"));
    }
    const absl::Status divides = DividedIntoParts(model, count).status();
    if (divides.ok()) {
      parts.push_back(static_cast<uint32_t>(count));
    } else {
      left_out->push_back(absl::StrCat("left out: ", divides.message()));
    }
  }
  return parts;
}

// Returns the experiment in this layout; it must be resolved again.
Experiment LaidOut(const Experiment& experiment, const Layout& layout) {
  Experiment laid_out = experiment;
  PipelineConfig* const pipeline = laid_out.mutable_pipeline();
  const uint32_t segments = pipeline->cuts(0) == kEmptyList ? 1 : pipeline->cuts_size() + 1;
  const bool are_open = IsDerived(experiment, "pipeline.cuts") || segments < layout.stages;
  if (are_open && !HasBottleneck(experiment.compression())) ForgetCuts(layout.stages, &laid_out);
  if (IsDerived(experiment, "pipeline.slices")) pipeline->clear_slices();
  pipeline->set_stages(layout.stages);
  SetParts(layout.parts, &laid_out);
  if (layout.replicas == 1) {
    laid_out.clear_replicas();
    return laid_out;
  }
  laid_out.mutable_replicas()->set_count(layout.replicas);
  SetSync(layout.every, laid_out.mutable_replicas());
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
  const bool has_own_sync =
      layout.replicas == 1 || layout.experiment.replicas().sync() == own.replicas().sync();
  return layout.replicas == ReplicasOf(own) && layout.stages == own.pipeline().stages() &&
         static_cast<int>(layout.parts) == PartsOf(own) &&
         layout.experiment.pipeline().microbatches() == own.pipeline().microbatches() &&
         has_own_sync;
}

// Fills in a layout's experiment, with one choice of codecs and one number of microbatches.
absl::Status Complete(const Experiment& experiment, const Tried& tried, int64_t microbatches,
                      Layout* layout) {
  layout->codec = tried.name;
  layout->experiment = LaidOut(experiment, *layout);
  layout->experiment.mutable_pipeline()->set_microbatches(static_cast<uint32_t>(microbatches));
  const bool is_frozen = experiment.has_lora() || experiment.freeze_size() > 0;
  if (tried.codecs && is_frozen) {  // the cuts tell whether gradients cross one
    RETURN_IF_ERROR(SetCodecs(std::nullopt, std::nullopt, /*cut=*/"", &layout->experiment));
    RETURN_IF_ERROR(Resolve(&layout->experiment));
  }
  RETURN_IF_ERROR(SetTried(tried, &layout->experiment));
  RETURN_IF_ERROR(Resolve(&layout->experiment));
  layout->is_own = tried.is_own && HasOwnShape(*layout, experiment);
  layout->other_microbatches =
      BatchMicrobatchesOf(layout->experiment) != BatchMicrobatchesOf(experiment);
  return absl::OkStatus();
}

// Adds a layout for each codec and number of microbatches.
absl::Status AddLayout(const Experiment& experiment, const Layout& shape,
                       const std::vector<Tried>& codecs, const LayoutOptions& options,
                       Layouts* layouts) {
  ASSIGN_OR_RETURN(const std::set<int64_t> microbatches,
                   MicrobatchesOf(experiment, shape.replicas, options));
  std::set<std::string> refused;
  for (const Tried& tried : codecs) {
    for (const int64_t count : microbatches) {
      Layout layout = shape;
      const absl::Status complete = Complete(experiment, tried, count, &layout);
      if (complete.ok()) {
        layouts->all.push_back(std::move(layout));
      } else if (refused.insert(std::string(complete.message())).second) {
        layouts->left_out.push_back(
            absl::StrCat("left out: ", shape.replicas, " x ", shape.stages,
                         shape.parts > 1 ? absl::StrCat(" x ", shape.parts) : "", ", ", tried.name,
                         ": ", complete.message()));
      }
    }
  }
  return absl::OkStatus();
}

// Adds layouts with an exchange every step, and of several replicas those with local steps.
absl::Status AddShape(const Experiment& experiment, Layout shape, const std::vector<Tried>& codecs,
                      const LayoutOptions& options, Layouts* layouts) {
  RETURN_IF_ERROR(AddLayout(experiment, shape, codecs, options, layouts));
  if (shape.replicas == 1) return absl::OkStatus();
  for (const uint32_t every : LocalStepsToTry(experiment)) {
    shape.every = every;
    RETURN_IF_ERROR(AddLayout(experiment, shape, codecs, options, layouts));
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

// Returns what takes most of a step.
const char* LimitOf(const Plan& plan) {
  const StepEstimate& step = plan.steps.front();
  const double exchange = plan.exchange.per_step * step.exposed_seconds();
  const double cuts = step.seconds() - exchange - step.sums_seconds() - plan.compute_seconds;
  const std::pair<double, const char*> takes[] = {{plan.compute_seconds, "compute"},
                                                  {cuts, "cuts"},
                                                  {exchange, "exchange"},
                                                  {step.sums_seconds(), "sums"}};
  const auto* most =
      std::max_element(std::begin(takes), std::end(takes),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
  return most->second;
}

double CostOf(const LayoutEstimate& row, double steps, const Prices& prices) {
  const double hours = row.epoch_seconds() / 3600;
  const double bytes = steps * static_cast<double>(row.wire_bytes()) / kPayloadShare;
  const double machines = double{1} * row.replicas() * row.stages() * row.parts();
  return machines * hours * prices.of_hour + bytes / 1e9 * prices.of_gigabyte;
}

absl::StatusOr<LayoutEstimate> EstimateOf(const Layout& layout, const Plan& plan,
                                          const LayoutOptions& options) {
  ASSIGN_OR_RETURN(const uint64_t an_epoch, StepsPerEpoch(layout.experiment));
  const auto steps = static_cast<double>(an_epoch);
  const StepEstimate& step = plan.steps.front();
  LayoutEstimate row;
  row.set_replicas(layout.replicas);
  row.set_stages(layout.stages);
  row.set_parts(layout.parts);
  row.set_codec(layout.codec);
  if (layout.replicas > 1) row.set_every(static_cast<uint32_t>(plan.exchange.every));
  row.set_microbatches(layout.experiment.pipeline().microbatches());
  row.set_own(layout.is_own);
  row.set_learns_otherwise(plan.batch_norm && layout.other_microbatches);
  row.set_step_seconds(step.seconds());
  row.set_sums_seconds(step.sums_seconds());
  row.set_samples_per_second(step.samples_per_second());
  row.set_wire_bytes(static_cast<uint64_t>(StepWireBytes(plan)));
  row.set_machine_wire_bytes(static_cast<uint64_t>(MachineWireBytes(plan)));
  row.set_memory_bytes(static_cast<uint64_t>(LargestMemoryBytes(plan)));
  row.set_fits(static_cast<double>(row.memory_bytes()) <= options.memory_bytes);
  row.set_limit(row.fits() ? LimitOf(plan) : "memory");
  row.set_epoch_seconds(steps * step.seconds());
  if (options.prices) row.set_epoch_cost(CostOf(row, steps, *options.prices));
  row.set_experiment(ToYaml(layout.experiment));
  return row;
}

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
  ASSIGN_OR_RETURN(const std::vector<uint32_t> all_parts,
                   PartsToTry(experiment, options, &layouts.left_out));
  const auto machines = static_cast<uint32_t>(options.machines);
  for (uint32_t replicas = 1; replicas <= machines; ++replicas) {
    for (const uint32_t parts : all_parts) {
      if (machines % (replicas * parts) != 0) continue;
      Layout shape;
      shape.replicas = replicas;
      shape.parts = parts;
      shape.stages = machines / (replicas * parts);
      RETURN_IF_ERROR(AddShape(experiment, shape, codecs, options, &layouts));
    }
  }
  if (!layouts.all.empty()) return layouts;
  return absl::InvalidArgumentError(
      absl::StrCat("--machines: ", options.machines, ": ", layouts.left_out.front()));
}

absl::StatusOr<std::vector<LayoutEstimate>> RankedLayouts(const std::vector<Layout>& layouts,
                                                          const LayoutOptions& options,
                                                          const PlanAssumptions& assumptions,
                                                          const Speeds& speeds) {
  using Key = std::tuple<uint32_t, uint32_t, uint32_t, std::string, uint32_t>;
  std::map<Key, LayoutEstimate> best;  // of all numbers of microbatches
  std::optional<LayoutEstimate> own;
  PlanAssumptions assumed = assumptions;
  assumed.carriers = 0;
  for (const Layout& layout : layouts) {
    ASSIGN_OR_RETURN(const Plan plan, MakePlan(layout.experiment, assumed, speeds));
    ASSIGN_OR_RETURN(const LayoutEstimate row, EstimateOf(layout, plan, options));
    const Key key{layout.replicas, layout.stages, layout.parts, layout.codec, layout.every};
    const auto [place, is_new] = best.emplace(key, row);
    if (!is_new && IsBetter(row, place->second)) place->second = row;
    if (row.own()) own = row;
  }
  std::vector<LayoutEstimate> ranked;
  for (auto& [key, row] : best) {
    if (row.own()) own.reset();
    ranked.push_back(std::move(row));
  }
  if (own) ranked.push_back(*std::move(own));  // another number of microbatches is faster
  std::stable_sort(ranked.begin(), ranked.end(), IsBetter);
  return ranked;
}

}  // namespace thinwire
