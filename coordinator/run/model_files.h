// The trained parameters, gathered from the stages: safetensors shards and their index.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/fleet/fleet.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// "model-00001-of-00004.safetensors" for shard 0 of 4.
std::string ShardName(int shard, int shards);

// Whole files beside a model's tensors, by name.
using SideFiles = std::map<std::string, std::string>;

// With what others open the model of a resolved experiment. For Hugging Face's transformers, of a
// model that they know, its config.json and, as they stand in the folder of `init`, the tokenizer's
// files and generation_config.json; of a text the vocabulary (data/vocabulary_files.h), unless it
// lies on the stages' machines alone. An error names the file.
absl::StatusOr<SideFiles> SideFilesOf(const Experiment& experiment);

// InvalidArgument if the ids of the experiment's text are not those that the folder of `init` was
// taught with, as far as files there tell; OK if they or the text are not on this machine.
absl::Status CheckInitialVocabulary(const Experiment& experiment);

// Streams one shard per stage into `dir` and writes model.safetensors.index.json, which says in
// which shard a tensor stands, and the files beside them. The folder appears when it is complete
// and replaces an older one in one step: whenever the process is killed, there is the older or the
// new one. On file systems that cannot exchange folders (NFS) the older one may be left as DIR.old
// instead.
absl::Status SaveModel(Fleet* fleet, const SideFiles& beside, const std::string& dir);

}  // namespace thinwire
