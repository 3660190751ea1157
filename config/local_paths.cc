#include "config/local_paths.h"

#include "absl/strings/str_cat.h"
#include "base/path.h"
#include "config/direction.h"
#include "config/replicas.h"

namespace thinwire {
namespace {

void Add(const std::string& field, std::string* value, std::vector<StagePath>* to,
         bool has_files = false) {
  if (!value->empty()) to->push_back({field, value, has_files});
}

void AddDirection(const std::string& path, DirectionConfig* direction, StagePaths* paths) {
  if (direction->has_plugin()) {
    Add(path + ".plugin", direction->mutable_plugin(), &paths->plugins);
  }
  if (direction->has_feedback() && direction->feedback().has_dir()) {
    Add(path + ".feedback.dir", direction->mutable_feedback()->mutable_dir(), &paths->state);
  }
}

template <typename Section>
void AddDirections(const std::string& path, Section* section, StagePaths* paths) {
  for (const bool gradient : {false, true}) {
    if (!HasDirection(*section, gradient)) continue;
    AddDirection(absl::StrCat(path, ".", DirectionName(gradient)),
                 MutableDirectionIn(gradient, section), paths);
  }
}

template <typename Section>
void AddExchanged(const std::string& path, Section* section, StagePaths* paths) {
  for (const bool is_sum : {false, true}) {
    if (!HasExchanged(*section, is_sum)) continue;
    AddDirection(absl::StrCat(path, ".", ExchangedName(is_sum)),
                 MutableExchangedIn(is_sum, section), paths);
  }
}

}  // namespace

StagePaths StagePathsOf(Experiment* experiment) {
  StagePaths paths;
  if (StagesReadInit(*experiment)) Add("init", experiment->mutable_init(), &paths.data);
  if (experiment->has_data()) {
    DataConfig& data = *experiment->mutable_data();
    if (data.has_dir()) Add("data.dir", data.mutable_dir(), &paths.data);
    if (data.has_file()) Add("data.file", data.mutable_file(), &paths.data, true);
    if (data.has_train()) Add("data.train", data.mutable_train(), &paths.data, true);
    if (data.has_test()) Add("data.test", data.mutable_test(), &paths.data, true);
    if (data.has_vocabulary()) Add("data.vocabulary", data.mutable_vocabulary(), &paths.data);
  }
  if (experiment->has_replicas()) {
    ReplicasConfig& replicas = *experiment->mutable_replicas();
    AddExchanged("replicas", &replicas, &paths);
    for (auto& [segment, own] : *replicas.mutable_stages()) {
      AddExchanged(absl::StrCat("replicas.stages.", segment), &own, &paths);
    }
  }
  if (experiment->has_pipeline() && experiment->pipeline().has_stash()) {
    AddDirection("pipeline.stash", experiment->mutable_pipeline()->mutable_stash(), &paths);
  }
  if (!experiment->has_compression()) return paths;
  CompressionConfig* compression = experiment->mutable_compression();
  AddDirections("compression", compression, &paths);
  for (auto& [cut, boundary] : *compression->mutable_boundaries()) {
    AddDirections(absl::StrCat("compression.boundaries.", cut), &boundary, &paths);
  }
  return paths;
}

void MakeCoordinatorPathsAbsolute(Experiment* experiment) {
  if (experiment->has_init() && !StagesReadInit(*experiment)) {
    experiment->set_init(AbsolutePath(experiment->init()));
  }
  if (experiment->lora().has_init()) {
    LoraConfig* const lora = experiment->mutable_lora();
    lora->set_init(AbsolutePath(lora->init()));
  }
  if (!experiment->has_security()) return;
  SecurityConfig& security = *experiment->mutable_security();
  if (security.has_tls_cert()) security.set_tls_cert(AbsolutePath(security.tls_cert()));
  if (security.has_tls_key()) security.set_tls_key(AbsolutePath(security.tls_key()));
  if (security.has_tls_ca()) security.set_tls_ca(AbsolutePath(security.tls_ca()));
  if (security.has_token_file()) security.set_token_file(AbsolutePath(security.token_file()));
}

void MakeStagePathsAbsolute(Experiment* experiment) {
  const StagePaths paths = StagePathsOf(experiment);
  for (const auto* group : {&paths.plugins, &paths.data, &paths.state}) {
    for (const StagePath& path : *group) *path.value = AbsolutePath(*path.value);
  }
}

}  // namespace thinwire
