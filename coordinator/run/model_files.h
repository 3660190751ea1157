// Saving the trained parameters, gathered from the stages, as safetensors shards with an index.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/fleet/fleet.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Whole files beside a model's tensors, by name.
using SideFiles = std::map<std::string, std::string>;

// Returns the files that others need to open the model of a resolved experiment. For a model that
// Hugging Face's transformers know, these are its config.json and, copied from the folder of
// `init`, the tokenizer's files and generation_config.json. For a text it is the vocabulary
// (data/vocabulary_files.h), unless only the stages' machines have it. An error names the file.
absl::StatusOr<SideFiles> SideFilesOf(const Experiment& experiment);

// Returns InvalidArgument if the token ids of the experiment's text are not those that the model in
// `dir` was trained with, as far as files there tell. OK if they or the text are not on this
// machine.
absl::Status CheckModelVocabulary(const std::string& dir, const Experiment& experiment);

// Does the same for the folder of `init`, if there is one.
absl::Status CheckInitialVocabulary(const Experiment& experiment);

// The folder of a run's model, which is written again and again. One thread at a time.
class SavedModel {
 public:
  // `has_frozen`: whether stages have parameters that are not trained. They are fetched once, into
  // shards of their own.
  SavedModel(std::string dir, SideFiles beside, bool has_frozen)
      : dir_(std::move(dir)), beside_(std::move(beside)), has_frozen_(has_frozen) {}

  // Streams one shard per stage into the folder and adds the files `beside` and
  // model.safetensors.index.json, which maps tensors to shards. The folder appears when it is
  // complete and replaces an older one atomically: a killed process leaves the older or the newer
  // one. On file systems that cannot exchange folders (NFS), the older one may be left as DIR.old
  // instead.
  absl::Status Save(Fleet* fleet);

 private:
  // Gathers the files of a model in an empty folder.
  absl::Status Gather(Fleet* fleet, const std::string& dir);
  // Puts the frozen shards that are there into another folder. False: one cannot be had so.
  bool LinkFrozen(const std::string& dir) const;

  const std::string dir_;
  const SideFiles beside_;
  const bool has_frozen_;
  std::vector<std::string> frozen_;  // names of the shards that Save has fetched; empty: none yet
};

}  // namespace thinwire
