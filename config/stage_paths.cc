#include "config/stage_paths.h"

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

void Add(const std::string& field, std::string* value, std::vector<StagePath>* to) {
  if (!value->empty()) to->push_back({field, value});
}

void AddDirection(const std::string& path, DirectionConfig* direction, StagePaths* paths) {
  if (direction->has_plugin()) {
    Add(path + ".plugin", direction->mutable_plugin(), &paths->plugins);
  }
  if (direction->has_feedback() && direction->feedback().has_dir()) {
    Add(path + ".feedback.dir", direction->mutable_feedback()->mutable_dir(), &paths->state);
  }
}

template <typename Config>  // with both directions
void AddDirections(const std::string& path, Config* config, StagePaths* paths) {
  if (config->has_activations()) {
    AddDirection(path + ".activations", config->mutable_activations(), paths);
  }
  if (config->has_gradients()) {
    AddDirection(path + ".gradients", config->mutable_gradients(), paths);
  }
}

}  // namespace

StagePaths StagePathsOf(Experiment* experiment) {
  StagePaths paths;
  if (experiment->has_data()) {
    DataConfig& data = *experiment->mutable_data();
    if (data.has_dir()) Add("data.dir", data.mutable_dir(), &paths.data);
    if (data.has_file()) Add("data.file", data.mutable_file(), &paths.data);
    if (data.has_vocabulary()) Add("data.vocabulary", data.mutable_vocabulary(), &paths.data);
  }
  if (experiment->has_replicas()) {
    ReplicasConfig& replicas = *experiment->mutable_replicas();
    if (replicas.has_contributions()) {
      AddDirection("replicas.contributions", replicas.mutable_contributions(), &paths);
    }
    if (replicas.has_average()) {
      AddDirection("replicas.average", replicas.mutable_average(), &paths);
    }
  }
  if (!experiment->has_compression()) return paths;
  CompressionConfig* compression = experiment->mutable_compression();
  AddDirections("compression", compression, &paths);
  for (auto& [cut, boundary] : *compression->mutable_boundaries()) {
    AddDirections(absl::StrCat("compression.boundaries.", cut), &boundary, &paths);
  }
  return paths;
}

}  // namespace thinwire
