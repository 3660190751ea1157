#include "config/experiment.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/hub_cache.h"
#include "base/path.h"
#include "base/status.h"
#include "config/adapter_config.h"
#include "config/checkpoint_config.h"
#include "config/choices.h"
#include "config/derived.h"
#include "config/direction.h"
#include "config/fields.h"
#include "config/local_paths.h"
#include "config/origins.h"
#include "config/overrides.h"
#include "config/replicas.h"
#include "config/replicas_spec.h"
#include "config/resolve.h"
#include "config/run_name.h"
#include "config/sections.h"
#include "config/specs.h"
#include "config/yaml_message.h"
#include "config/yaml_tree.h"
#include "data/dataset.h"

namespace thinwire {
namespace {

// Returns whether the overlay changes how documents become samples.
bool ChangesSamples(const DataConfig& overlay) {
  return overlay.has_context() || overlay.has_chat() || overlay.has_loss_on() ||
         overlay.has_packing() || overlay.has_too_long() || overlay.has_fields() ||
         overlay.has_on_error();
}

// Drops the count of a text if the overlay changes the text, its tokens or what is counted of it.
void ForgetCorpus(const DataConfig& overlay, DataConfig* data) {
  const bool is_other = overlay.has_file() || overlay.has_split() || overlay.has_tokens() ||
                        overlay.has_vocabulary() || overlay.has_dir() || overlay.has_verify() ||
                        overlay.has_end_of_text() || overlay.has_lowercase() ||
                        overlay.has_task() || overlay.has_specials() || overlay.has_train() ||
                        overlay.has_test() || overlay.has_type();
  const absl::StatusOr<KnownDataset> known = KnownDatasetOf(*data);
  const bool is_counted_anew = known.ok() && known->has_documents && ChangesSamples(overlay);
  if (!data->has_corpus() || !(is_other || is_counted_anew)) return;
  const bool keeps_ids = known.ok() && MayPredateEndOfText(*known) &&
                         data->tokens() == Name(TokenKind::kBpe) && !overlay.has_tokens();
  if (keeps_ids && !data->has_end_of_text()) data->set_end_of_text(Name(EndOfText::kCharacters));
  data->clear_corpus();
}

// Drops what an old chat format has, such as its template's system message, for another format.
void ForgetChat(const ChatConfig& overlay, DataConfig* data) {
  const bool have_kinds = overlay.has_kind() && data->chat().has_kind();
  if (have_kinds && overlay.kind() != data->chat().kind()) data->clear_chat();
}

void ForgetReplacedBy(const Experiment& overlay, Experiment* e) {
  ForgetReplaced(overlay, e);
  if (overlay.has_epochs() && !overlay.has_steps()) e->clear_steps();
  if (overlay.has_steps() && !overlay.has_epochs()) e->clear_epochs();
  if (e->has_data()) {
    ForgetChat(overlay.data().chat(), e->mutable_data());
    ForgetCorpus(overlay.data(), e->mutable_data());
  }
  const bool gathers = overlay.replicas().exchange() == Name(ReplicaExchange::kGather);
  if (!e->has_replicas()) return;
  ReplicasConfig* const replicas = e->mutable_replicas();
  if (overlay.replicas().stages().contains("auto")) replicas->clear_stages();
  if (!gathers) return;
  replicas->clear_average();
  for (auto& [segment, own] : *replicas->mutable_stages()) own.clear_average();
}

DirectionConfig WholeOf(const CompressionConfig& compression, const std::string& cut,
                        bool gradient) {
  return Overlaid(DirectionIn(compression, gradient),
                  DirectionIn(OwnOf(compression, cut), gradient));
}

// `after` is `before` with `overlay` merged over it.
void ForgetSilencedBy(const CompressionConfig& before, const CompressionConfig& overlay,
                      CompressionConfig* after) {
  const CompressionConfig whole = *after;
  for (const bool gradient : {false, true}) {
    ForgetSilenced(DirectionIn(before, gradient), DirectionIn(overlay, gradient),
                   DirectionIn(whole, gradient), MutableDirectionIn(gradient, after));
    if (after->has_sums()) {
      ForgetSilenced(DirectionIn(before.sums(), gradient), DirectionIn(overlay.sums(), gradient),
                     DirectionIn(whole.sums(), gradient),
                     MutableDirectionIn(gradient, after->mutable_sums()));
    }
    for (auto& [cut, boundary] : *after->mutable_boundaries()) {
      if (!HasDirection(boundary, gradient)) continue;
      ForgetSilenced(WholeOf(before, cut, gradient), DirectionIn(OwnOf(overlay, cut), gradient),
                     WholeOf(whole, cut, gradient), MutableDirectionIn(gradient, &boundary));
    }
  }
}

const ExchangedConfig& OwnOf(const ReplicasConfig& replicas, const std::string& segment) {
  const auto found = replicas.stages().find(segment);
  return found == replicas.stages().end() ? ExchangedConfig::default_instance() : found->second;
}

DirectionConfig WholeOf(const ReplicasConfig& replicas, const std::string& segment, bool is_sum) {
  return OverlaidExchanged(ExchangedIn(replicas, is_sum),
                           ExchangedIn(OwnOf(replicas, segment), is_sum));
}

// Does the same for what replicas exchange.
void ForgetSilencedBy(const ReplicasConfig& before, const ReplicasConfig& overlay,
                      ReplicasConfig* after) {
  const ReplicasConfig whole = *after;
  for (const bool is_sum : {false, true}) {
    if (HasExchanged(*after, is_sum)) {
      ForgetSilenced(ExchangedIn(before, is_sum), ExchangedIn(overlay, is_sum),
                     ExchangedIn(whole, is_sum), MutableExchangedIn(is_sum, after));
    }
    for (auto& [segment, own] : *after->mutable_stages()) {
      if (!HasExchanged(own, is_sum)) continue;
      ForgetSilenced(WholeOf(before, segment, is_sum), ExchangedIn(OwnOf(overlay, segment), is_sum),
                     WholeOf(whole, segment, is_sum), MutableExchangedIn(is_sum, &own));
    }
  }
}

// Merges all overrides into one overlay first. A choice in it replaces that of the file, but no
// parameter that another override gives it.
absl::Status ApplyOverrides(const std::vector<std::string>& overrides, Experiment* e,
                            Origins* origins) {
  Experiment all;
  std::vector<std::string> cleared;
  for (const std::string& assignment : overrides) {
    Experiment overlay;
    RETURN_IF_ERROR(Override(assignment, &overlay));
    ForgetReplacedBy(overlay, &all);
    RETURN_IF_ERROR(Override(assignment, &all, origins));
    cleared.push_back(ClearedBy(assignment, all));
  }
  if (!overrides.empty()) ForgetDerived(all, e);
  for (const std::string& path : cleared) ClearField(path, e);
  const CompressionConfig file = e->compression();
  const ReplicasConfig replicas = e->replicas();
  const DirectionConfig stash = e->pipeline().stash();
  ForgetReplacedBy(all, e);
  RETURN_IF_ERROR(MergeYaml(WriteYaml(all), "--set", e));  // MergeFrom would append lists
  ForgetSilencedBy(file, all.compression(), e->mutable_compression());
  if (e->has_replicas()) ForgetSilencedBy(replicas, all.replicas(), e->mutable_replicas());
  if (e->pipeline().has_stash()) {
    const DirectionConfig whole = e->pipeline().stash();
    ForgetSilenced(stash, all.pipeline().stash(), whole, e->mutable_pipeline()->mutable_stash());
  }
  return absl::OkStatus();
}

absl::Status NameAfter(const std::string& source, Experiment* e) {
  if (e->has_name()) return absl::OkStatus();
  e->set_name(RunNameOf(source));
  if (!e->name().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(YamlPlace(source, /*line=*/0),
                   "name: absent, and the file's own has no letter or digit that a name may have; "
                   "want name, or --set name=..."));
}

// Errors about a model's field that a checkpoint filled in name that checkpoint's file.
absl::Status FillModel(Experiment* e, Origins* origins) {
  const ModelConfig given = e->model();
  RETURN_IF_ERROR(FillFromCheckpoint(e));
  for (const auto* field : SetFields(e->model())) {
    if (field->is_repeated() || IsSet(given, field)) continue;
    origins->Add(absl::StrCat("model.", field->name()),
                 absl::StrCat("init: ", e->init(), "/config.json: "), /*is_section=*/false);
  }
  return absl::OkStatus();
}

// Does the same for fields of `lora` that an adapter's files fill in.
absl::Status FillLora(Experiment* e, Origins* origins) {
  const LoraConfig given = e->lora();
  RETURN_IF_ERROR(FillFromAdapter(e));
  if (!e->lora().has_init()) return absl::OkStatus();
  for (const auto* field : SetFields(e->lora())) {
    if (IsSet(given, field)) continue;
    origins->Add(absl::StrCat("lora.", field->name()),
                 absl::StrCat("lora.init: ", e->lora().init(), ": "), /*is_section=*/false);
  }
  return absl::OkStatus();
}

// Reads only what the file and the overrides say.
absl::StatusOr<Experiment> Given(const std::string& text, const std::string& source,
                                 const std::vector<std::string>& overrides, Origins* origins) {
  Experiment e;
  RETURN_IF_ERROR(MergeYaml(text, source, &e, origins));
  RETURN_IF_ERROR(ApplyOverrides(overrides, &e, origins));
  RETURN_IF_ERROR(NameAfter(source, &e));
  MakeCoordinatorPathsAbsolute(&e);
  return e;
}

int SegmentsOf(const PipelineConfig& resolved) {
  return static_cast<int>(GivenCuts(resolved).size()) + 1;
}

// Returns the number of stages given by the number of servers; 0: as the experiment says.
uint32_t StagesOf(const Surroundings& surroundings, const Experiment& given) {
  const bool is_open = !given.pipeline().has_stages() || IsDerived(given, "pipeline.stages");
  if (!is_open || surroundings.stages == 0) return 0;
  if (surroundings.past == nullptr) return surroundings.stages;
  return std::min(surroundings.stages,
                  static_cast<uint32_t>(SegmentsOf(surroundings.past->pipeline())));
}

// A run that began from a checkpoint keeps its model, whatever is in that folder now.
void FillModelOf(const Experiment& past, Experiment* e) {
  ModelConfig model = past.model();
  model.clear_blocks();  // merging would join the lists
  if (e->model().window_layers_size() > 0) model.clear_window_layers();
  *e->mutable_model() = Overlaid(model, e->model());
}

// A run that began from an adapter keeps what that was, likewise.
void FillLoraOf(const Experiment& past, Experiment* e) {
  LoraConfig lora = past.lora();
  if (!e->lora().modules().empty()) lora.clear_modules();
  if (!e->lora().layers().empty()) lora.clear_layers();
  *e->mutable_lora() = Overlaid(lora, e->lora());
}

// Codecs act at cuts, so a run keeps its cuts on other machines, too.
void FillCutsOf(const Experiment& past, Experiment* e) {
  const auto& cuts = e->pipeline().cuts();
  const bool is_open = cuts.empty() || (cuts.size() == 1 && cuts[0] == "auto");
  if (!is_open || static_cast<int>(e->pipeline().stages()) > SegmentsOf(past.pipeline())) return;
  *e->mutable_pipeline()->mutable_cuts() = past.pipeline().cuts();
}

// Puts the folder in place of `init`'s name in the hub. Its tokenizer keeps the name, with a
// commit, as the stages' machines may have it elsewhere; so does `init` where they read it, which
// this machine need not have.
absl::Status FollowInit(Experiment* e) {
  if (!IsHubId(e->init())) return absl::OkStatus();
  const absl::StatusOr<std::string> found = HubFolder(e->init());
  if (!found.ok() && StagesReadInit(*e)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string folder, Annotated(found, "init"));
  e->set_init(folder);
  const bool has_vocabulary = e->data().has_vocabulary();
  TakeTokensOfInit(e);
  const bool is_taken = !has_vocabulary && e->data().has_vocabulary();
  if (is_taken) e->mutable_data()->set_vocabulary(HubIdOr(folder));
  if (StagesReadInit(*e)) e->set_init(HubIdOr(folder));
  return absl::OkStatus();
}

// Does the same for an adapter, which has no tokenizer.
absl::Status FollowAdapter(Experiment* e) {
  if (!IsHubId(e->lora().init())) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string folder, Annotated(HubFolder(e->lora().init()), "lora.init"));
  e->mutable_lora()->set_init(folder);
  return absl::OkStatus();
}

// Turns names in the hub into what all machines understand: those of `init` and an adapter into
// their folders, that of a vocabulary into one with its commit, unless only the stages' machines
// have it.
absl::Status FollowHubIds(Experiment* e) {
  RETURN_IF_ERROR(FollowInit(e));
  RETURN_IF_ERROR(FollowAdapter(e));
  if (!IsHubId(e->data().vocabulary())) return absl::OkStatus();
  const auto folder = HubFolder(e->data().vocabulary());
  if (folder.ok()) e->mutable_data()->set_vocabulary(HubIdOr(*folder));
  return absl::OkStatus();
}

// Fills in what is not given, and checks everything.
absl::Status Complete(const Experiment* past, Experiment* e, Origins* origins) {
  const absl::Status followed = FollowHubIds(e);
  if (past != nullptr) {
    if (e->has_init()) FillModelOf(*past, e);
    if (e->lora().has_init()) FillLoraOf(*past, e);
    FillCutsOf(*past, e);
    return Resolve(e);
  }
  RETURN_IF_ERROR(followed);
  const bool says_classes = e->model().has_classes() && !IsDerived(*e, "model.classes");
  const bool says_vocabulary = e->model().has_vocabulary() && !IsDerived(*e, "model.vocabulary");
  RETURN_IF_ERROR(FillModel(e, origins));
  RETURN_IF_ERROR(FillLora(e, origins));
  RETURN_IF_ERROR(Resolve(e));
  RETURN_IF_ERROR(CheckAgainstCheckpoint(*e));
  const bool says_ids = e->model().has_vocabulary() ? says_vocabulary : says_classes;
  return says_ids ? absl::OkStatus() : CheckIdsOfCheckpoint(*e);
}

}  // namespace

absl::StatusOr<Experiment> ParseExperiment(const std::string& text, const std::string& source,
                                           const std::vector<std::string>& overrides,
                                           const Surroundings& surroundings) {
  Origins origins;
  ASSIGN_OR_RETURN(Experiment given, Given(text, source, overrides, &origins));
  const uint32_t stages = StagesOf(surroundings, given);
  const bool has_other_stages = stages > 0 && given.pipeline().stages() != stages;
  if (has_other_stages) {
    ForgetDerived(Experiment(), &given);  // cuts, slices and other fields may be derived
    given.mutable_pipeline()->clear_stages();
  }
  Experiment e = given;
  if (has_other_stages) e.mutable_pipeline()->set_stages(stages);
  const absl::Status status = Complete(surroundings.past, &e, &origins);
  if (status.ok()) {
    if (e.derived().empty()) NoteDerived(given, &e);
    return e;
  }
  const std::string refusal(status.message()), place = origins.Of(refusal);
  return absl::InvalidArgumentError(
      absl::StrCat(place.empty() ? YamlPlace(source, /*line=*/0) : place, refusal));
}

absl::StatusOr<Experiment> LoadExperiment(const std::string& path,
                                          const std::vector<std::string>& overrides,
                                          const Surroundings& surroundings) {
  ASSIGN_OR_RETURN(const std::string text, ReadYamlFile(path));
  return ParseExperiment(text, path, overrides, surroundings);
}

absl::StatusOr<Experiment> ParseResolved(const std::string& text, const std::string& source) {
  Experiment e;
  RETURN_IF_ERROR(MergeYaml(text, source, &e));
  const absl::Status resolved = Resolve(&e);
  if (resolved.ok()) return e;
  return absl::InvalidArgumentError(
      absl::StrCat(YamlPlace(source, /*line=*/0), resolved.message()));
}

absl::StatusOr<Experiment> ReadResolved(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadYamlFile(path));
  return ParseResolved(text, path);
}

absl::StatusOr<std::string> NameOfExperiment(const std::string& path,
                                             const std::vector<std::string>& overrides) {
  ASSIGN_OR_RETURN(const std::string text, ReadYamlFile(path));
  Origins origins;
  ASSIGN_OR_RETURN(const Experiment given, Given(text, path, overrides, &origins));
  return given.name();
}

std::string ToYaml(const Experiment& experiment) { return WriteYaml(experiment); }

}  // namespace thinwire
