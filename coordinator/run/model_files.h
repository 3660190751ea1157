// The trained parameters, gathered from the stages: safetensors shards and their index.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/files/tensor_file.h"
#include "coordinator/fleet/fleet.h"

namespace thinwire {

// "model-00001-of-00004.safetensors" for shard 0 of 4.
std::string ShardName(int shard, int shards);

// What a safetensors file says of itself.
struct ShardContents {
  std::vector<std::string> tensors;  // names, sorted
  uint64_t data_bytes = 0;           // of all tensors
};
// DataLoss naming the file when it is no safetensors file or is cut short.
absl::StatusOr<ShardContents> ReadShardContents(const std::string& path);

// A saved model.
struct LoadedModel {
  std::vector<TensorFile> shards;
  std::vector<StoredTensor> tensors;  // of all shards; point into them
};
// Reads what SaveModel wrote. Errors name the file: one that is missing or malformed, a tensor that
// the index names and its shard does not have.
absl::StatusOr<LoadedModel> LoadModel(const std::string& dir);

// Streams one shard per stage into `dir` and writes model.safetensors.index.json, which says in
// which shard a tensor stands. The folder appears when it is complete and replaces an older one.
absl::Status SaveModel(Fleet* fleet, const std::string& dir);

}  // namespace thinwire
