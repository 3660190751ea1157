// How parameters stand in checkpoint files: as which tensors, under which names. Writers and
// readers both follow this, so that it is said once.
//
// Files are those of PyTorch and of Hugging Face's transformers. They differ from a parameter where
// its ParameterSpec says so: GPT-2 keeps the weights of its blocks as [in, out], Llama keeps
// queries, keys and values as a tensor each, and of tied parameters the file has one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "models/model.h"

namespace thinwire {

// Rows [first_row, first_row + rows) of a parameter, a row being what its first axis counts.
struct FileTensor {
  std::string name;
  std::vector<int64_t> shape;  // in the file
  int64_t first_row = 0, rows = 0;
  int64_t row_elements = 0;
  bool transposed = false;

  int64_t elements() const { return rows * row_elements; }
};

// The tensors of a parameter, in the order of its rows. A tied copy takes its values from those of
// the parameter that it copies.
std::vector<FileTensor> FileTensors(const ParameterSpec& parameter);

// Only such a parameter is written.
inline bool StandsInFiles(const ParameterSpec& parameter) { return parameter.tied_to.empty(); }

// The rows of a tensor as the file has them, and back: both have tensor.elements().
void ToFileOrder(const FileTensor& tensor, absl::Span<const float> rows, absl::Span<float> file);
void FromFileOrder(const FileTensor& tensor, absl::Span<const float> file, absl::Span<float> rows);

// Published files may hold the trunk of a model alone, whose names then lack the first part
// ("h.0.ln_1.weight"): the names that `name` may mean, itself first.
std::vector<std::string> MeaningsOf(const std::string& name);

// True for what PyTorch modules keep beside their parameters and a model here computes or does not
// need: GPT-2's causal masks, Llama's rotary frequencies, batch norm's counts of batches.
bool IsKnownBuffer(const std::string& name);

}  // namespace thinwire
