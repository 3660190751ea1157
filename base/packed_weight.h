// Weights in four bits as bitsandbytes writes them (NF4; Dettmers et al., QLoRA, NeurIPS 2023),
// read as numbers.
//
// A weight NAME is several tensors, of one file or of several shards: NAME, U8, two codes a byte,
// the first in the upper bits; NAME.absmax, a scale for each block of codes; NAME.quant_map, F32
// [16], the levels; and NAME.quant_state.bitsandbytes__nf4, U8, a text in JSON with shape and size
// of blocks. Scales are F32, or U8: numbers of NAME.nested_quant_map, F32 [256], times those of
// NAME.nested_absmax, one for each nested_blocksize of them, plus nested_offset.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/tensor_file.h"

namespace thinwire {

// A tensor of one of several files.
struct ShardedTensor {
  TensorPlace place;
  size_t file = 0;
};

// Where a weight's tensors stand, and what its state says.
struct PackedWeight {
  std::string name;
  std::vector<int64_t> shape;
  int64_t block = 0;         // number of codes with one scale
  int64_t nested_block = 0;  // number of scales with one scale; 0: they are F32
  float nested_offset = 0;
  ShardedTensor codes, scales, levels, nested_levels, nested_scales;

  int64_t elements() const;
};

// Returns the weights that are packed so, of these tensors of the files by their names. DataLoss
// names the file of a weight's state, and a tensor that is missing or does not fit; InvalidArgument
// one in another format of bitsandbytes.
absl::StatusOr<std::vector<PackedWeight>> PackedWeights(
    const std::vector<OpenTensorFile>& files, const std::map<std::string, ShardedTensor>& tensors);

// Returns the names of a weight's tensors in the files.
std::vector<std::string> NamesOf(const PackedWeight& weight);

// Returns the numbers that the codes stand for, each a level times a scale, in the weight's order.
// The weight's files begin with number `first` of these.
absl::StatusOr<std::vector<float>> Unpacked(const PackedWeight& weight,
                                            const std::vector<OpenTensorFile>& files, size_t first);

}  // namespace thinwire
