#include <algorithm>
#include <cstdint>

#include "nn/cpu/bf16.h"
#include "nn/cpu/kernels.h"
#include "nn/cpu/parallel.h"

namespace thinwire::cpu {
namespace {

constexpr int64_t kGrain = 16 * 1024;  // elements; with fewer, one thread is faster
constexpr int64_t kColumns = 16;       // assigned to a thread together: a cache line of fp32

Error CheckIds(const TensorView& ids, int64_t vocabulary) {
  if (ids.dtype != DType::kI32) {
    return MakeError(absl::StatusCode::kInvalidArgument, "embedding: ids are %s, want int32",
                     Name(ids.dtype));
  }
  const auto* const id = static_cast<const int32_t*>(ids.data);
  for (int64_t i = 0, n = ids.elements(); i < n; ++i) {
    if (id[i] >= 0 && id[i] < vocabulary) continue;
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "embedding: id %d at position %lld, want one in [0, %lld)", id[i],
                     static_cast<long long>(i), static_cast<long long>(vocabulary));
  }
  return Error{};
}

template <typename From, typename T>
void WriteRow(const From* row, const float* position, int64_t features, T* y) {
  if (position == nullptr) {
    for (int64_t j = 0; j < features; ++j) StoreOne(LoadOne(row + j), y + j);
  } else {
    for (int64_t j = 0; j < features; ++j) StoreOne(LoadOne(row + j) + position[j], y + j);
  }
}

template <typename T>
void Typed(int threads, const Embedding& a) {
  const int64_t positions = a.y.dims[1], rows = a.y.dims[0] * positions;
  const auto* const ids = static_cast<const int32_t*>(a.ids.data);
  ParallelRange(
      threads, rows, kGrain / std::max<int64_t>(a.features, 1), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const float* const position =
              a.positions == nullptr
                  ? nullptr
                  : a.positions + (a.first_position + i % positions) * a.features;
          T* const y = static_cast<T*>(a.y.data) + i * a.features;
          if (a.table != nullptr) {
            WriteRow(a.table + ids[i] * a.features, position, a.features, y);
          } else {
            WriteRow(static_cast<const T*>(a.x.data) + i * a.features, position, a.features, y);
          }
        }
      });
}

// Adds columns [begin, end) of every row, row after row. Threads share the columns, so none adds to
// another's element, and the order of a sum is fixed.
template <typename T>
void AddColumns(const EmbeddingBackward& a, int64_t begin, int64_t end) {
  const int64_t positions = a.dy.dims[1], rows = a.dy.dims[0] * positions;
  const auto* const ids = static_cast<const int32_t*>(a.ids.data);
  for (int64_t i = 0; i < rows; ++i) {
    const T* const dy = static_cast<const T*>(a.dy.data) + i * a.features;
    if (a.dtable != nullptr) {
      float* const row = a.dtable + ids[i] * a.features;
      for (int64_t j = begin; j < end; ++j) row[j] += LoadOne(dy + j);
    }
    if (a.dpositions != nullptr) {
      float* const row = a.dpositions + (a.first_position + i % positions) * a.features;
      for (int64_t j = begin; j < end; ++j) row[j] += LoadOne(dy + j);
    }
  }
}

}  // namespace

Error Kernels::Embed(const Embedding& a) {
  if (a.table != nullptr) RETURN_ERROR(CheckIds(a.ids, a.vocabulary));
  a.y.dtype == DType::kF32 ? Typed<float>(threads_, a) : Typed<uint16_t>(threads_, a);
  return Error{};
}

Error Kernels::EmbedBackward(const EmbeddingBackward& a) {
  if (a.dtable != nullptr) RETURN_ERROR(CheckIds(a.ids, a.vocabulary));
  const int64_t groups = (a.features + kColumns - 1) / kColumns;
  const int64_t rows = a.dy.dims[0] * a.dy.dims[1];
  ParallelRange(threads_, groups, kGrain / (kColumns * std::max<int64_t>(rows, 1)),
                [&](int64_t begin, int64_t end) {
                  const int64_t first = begin * kColumns;
                  const int64_t last = std::min(end * kColumns, a.features);
                  a.dy.dtype == DType::kF32 ? AddColumns<float>(a, first, last)
                                            : AddColumns<uint16_t>(a, first, last);
                });
  return Error{};
}

}  // namespace thinwire::cpu
