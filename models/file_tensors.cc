#include "models/file_tensors.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace thinwire {
namespace {

// The first parts of the names of the trunks of GPT-2, Llama, BERT and ViT in transformers.
constexpr const char* kTrunks[] = {"transformer.", "model.", "bert.", "vit."};

// Ends of names in older files, and what they are now: BERT's first norms came from TensorFlow.
constexpr std::pair<const char*, const char*> kOldSuffixes[] = {
    {".LayerNorm.gamma", ".LayerNorm.weight"}, {".LayerNorm.beta", ".LayerNorm.bias"}};

constexpr const char* kBuffers[] = {
    ".attn.bias",           ".attn.masked_bias",       ".rotary_emb.inv_freq",
    ".num_batches_tracked", "embeddings.position_ids", "cls.predictions.decoder.bias"};

FileTensor RowsOf(const ParameterSpec& parameter, const std::string& name, int64_t first_row,
                  int64_t rows) {
  FileTensor tensor;
  tensor.name = name;
  tensor.shape.assign(parameter.shape.begin(), parameter.shape.end());
  if (!tensor.shape.empty()) tensor.shape[0] = rows;
  tensor.first_row = first_row;
  tensor.rows = rows;
  tensor.row_elements = parameter.shape.elements() / parameter.shape[0];
  tensor.transposed = parameter.transposed;
  if (tensor.transposed) std::reverse(tensor.shape.begin(), tensor.shape.end());
  return tensor;
}

// Returns the same of a slice: `first_row` and `rows` are of the whole parameter.
FileTensor SliceOf(const ParameterSpec& parameter, const std::string& name, int64_t first_row,
                   int64_t rows) {
  const ParameterSlice& slice = parameter.slice;
  ParameterSpec whole = parameter;
  whole.shape = slice.shape;
  FileTensor tensor = RowsOf(whole, name, first_row, rows);
  tensor.first_row = tensor.rows = 0;
  tensor.row_elements = parameter.shape.elements() / parameter.shape[0];
  tensor.slice_columns = parameter.shape.rank() == 2 ? slice.columns : IndexRange{0, 1};
  for (const IndexRange& range : slice.rows) {
    const int64_t begin = std::max(range.first, first_row);
    const int64_t end = std::min(range.first + range.count, first_row + rows);
    if (begin < end) {
      tensor.slice_rows.push_back({begin - first_row, end - begin});
      tensor.rows += end - begin;
    } else if (range.first < first_row) {
      tensor.first_row += range.count;
    }
  }
  return tensor;
}

// Transposes from [rows, columns] to [columns, rows]. It goes tile by tile: along whole columns
// each element would miss the cache.
void Transpose(const float* from, int64_t rows, int64_t columns, float* to) {
  constexpr int64_t kTile = 32;
  for (int64_t top = 0; top < rows; top += kTile) {
    for (int64_t left = 0; left < columns; left += kTile) {
      const int64_t bottom = std::min(top + kTile, rows), right = std::min(left + kTile, columns);
      for (int64_t row = top; row < bottom; ++row) {
        for (int64_t column = left; column < right; ++column) {
          to[column * rows + row] = from[row * columns + column];
        }
      }
    }
  }
}

// Calls visit(own, at) for each element of a slice: its index in the slice and in the file.
template <typename Visit>
void ForEachOfSlice(const FileTensor& tensor, const Visit& visit) {
  const IndexRange columns = tensor.slice_columns;
  // Strides in the file of rows and columns as the parameter has them.
  const int64_t row_stride = tensor.transposed || tensor.shape.size() == 1 ? 1 : tensor.shape[1];
  const int64_t column_stride = tensor.transposed ? tensor.shape[1] : 1;
  int64_t own = 0;
  for (const IndexRange& rows : tensor.slice_rows) {
    for (int64_t row = rows.first; row < rows.first + rows.count; ++row) {
      for (int64_t column = columns.first; column < columns.first + columns.count; ++column) {
        visit(own++, row * row_stride + column * column_stride);
      }
    }
  }
}

}  // namespace

int64_t FileTensor::file_elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::vector<FileTensor> FileTensors(const ParameterSpec& parameter) {
  const bool is_slice = !parameter.slice.whole.empty();
  const auto make = is_slice ? SliceOf : RowsOf;
  const int64_t rows = is_slice ? parameter.slice.shape[0] : parameter.shape[0];
  if (!parameter.tied_to.empty()) return {make(parameter, parameter.tied_to, 0, rows)};
  if (parameter.parts.empty()) {
    return {make(parameter, is_slice ? parameter.slice.whole : parameter.name, 0, rows)};
  }
  std::vector<FileTensor> tensors;
  int64_t first_row = 0;
  for (const FilePart& part : parameter.parts) {
    tensors.push_back(make(parameter, part.name, first_row, part.rows));
    first_row += part.rows;
  }
  return tensors;
}

void ToFileOrder(const FileTensor& tensor, absl::Span<const float> rows, absl::Span<float> file) {
  if (tensor.is_slice()) {
    ForEachOfSlice(tensor, [&](int64_t own, int64_t at) { file[at] = rows[own]; });
  } else if (tensor.transposed) {
    Transpose(rows.data(), tensor.rows, tensor.row_elements, file.data());
  } else {
    std::copy(rows.begin(), rows.end(), file.begin());
  }
}

void FromFileOrder(const FileTensor& tensor, absl::Span<const float> file, absl::Span<float> rows) {
  if (tensor.is_slice()) {
    ForEachOfSlice(tensor, [&](int64_t own, int64_t at) { rows[own] = file[at]; });
  } else if (tensor.transposed) {
    Transpose(file.data(), tensor.row_elements, tensor.rows, rows.data());
  } else {
    std::copy(file.begin(), file.end(), rows.begin());
  }
}

std::vector<std::string> MeaningsOf(const std::string& name_in_file) {
  const std::string name(absl::StripPrefix(name_in_file, kAdapterPrefix));
  std::vector<std::string> meanings = {name};
  for (const auto& [old, now] : kOldSuffixes) {
    if (!absl::EndsWith(name, old)) continue;
    meanings.push_back(absl::StrCat(absl::StripSuffix(name, old), now));
  }
  for (size_t i = 0, own = meanings.size(); i < own; ++i) {
    for (const char* trunk : kTrunks) meanings.push_back(absl::StrCat(trunk, meanings[i]));
  }
  return meanings;
}

bool IsKnownBuffer(const std::string& name) {
  return std::any_of(std::begin(kBuffers), std::end(kBuffers),
                     [&](const char* buffer) { return absl::EndsWith(name, buffer); });
}

}  // namespace thinwire
