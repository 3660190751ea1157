// Form of parameters in checkpoint files: tensors and their names. Writers and readers both use
// this.
//
// Files are like those of PyTorch and of Hugging Face's transformers. They differ from a parameter
// where its ParameterSpec says so. GPT-2 stores the weights of its blocks as [in, out]; Llama
// stores queries, keys and values as a tensor each; of tied parameters the file has only one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "models/model.h"

namespace thinwire {

// A tensor in a file: rows [first_row, first_row + rows) of a parameter. Rows run along its first
// axis. Of a slice (ParameterSlice in models/model.h) the rows are part of the tensor's.
struct FileTensor {
  std::string name;
  std::vector<int64_t> shape;  // in the file
  int64_t first_row = 0, rows = 0;
  int64_t row_elements = 0;
  bool transposed = false;
  std::vector<IndexRange> slice_rows;  // of the tensor, not transposed; empty: all of it
  IndexRange slice_columns;

  bool is_slice() const { return !slice_rows.empty(); }
  int64_t elements() const { return rows * row_elements; }
  int64_t file_elements() const;
};

// Returns the tensors of a parameter in the order of its rows. For a tied copy these are the
// tensors of its original.
std::vector<FileTensor> FileTensors(const ParameterSpec& parameter);

// Returns whether the parameter is stored itself; a tied copy is not.
inline bool StandsInFiles(const ParameterSpec& parameter) { return parameter.tied_to.empty(); }

// Convert rows of a parameter, elements(), to the file's order, file_elements(), and back. A slice
// writes only its own elements of the file's.
void ToFileOrder(const FileTensor& tensor, absl::Span<const float> rows, absl::Span<float> file);
void FromFileOrder(const FileTensor& tensor, absl::Span<const float> file, absl::Span<float> rows);

// Begins the names in files of adapters, which are peft's, in front of a model's own.
inline constexpr char kAdapterPrefix[] = "base_model.model.";

// Returns the full names that a name in a file may stand for, first itself without that prefix.
// Published files may hold only the trunk of a model, whose names then lack the first part
// ("h.0.ln_1.weight"); older ones of BERT call a norm's weight and bias gamma and beta.
std::vector<std::string> MeaningsOf(const std::string& name_in_file);

// Returns true for buffers of PyTorch modules that a model here computes or does not need: GPT-2's
// causal masks, Llama's rotary frequencies, BERT's numbers of positions and its second copy of a
// bias, batch norm's counts of batches.
bool IsKnownBuffer(const std::string& name);

}  // namespace thinwire
