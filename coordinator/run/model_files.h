// The trained parameters, gathered from the stages: safetensors shards and their index.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "coordinator/fleet/fleet.h"

namespace thinwire {

// "model-00001-of-00004.safetensors" for shard 0 of 4.
std::string ShardName(int shard, int shards);

// Streams one shard per stage into `dir` and writes model.safetensors.index.json, which says in
// which shard a tensor stands, and `config` as config.json unless it is empty. The folder appears
// when it is complete and replaces an older one in one step: whenever the process is killed, there
// is the older or the new one. On file systems that cannot exchange folders (NFS) the older one may
// be left as DIR.old instead.
absl::Status SaveModel(Fleet* fleet, const std::string& config, const std::string& dir);

}  // namespace thinwire
