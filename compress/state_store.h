// What a compensator remembers: rows of fp32 numbers, one per sample that a message may hold, found
// by a 64-bit key. Stored as fp32 or encoded by bit-specified codecs, so that two ends which store
// equal values hold equal bytes; in memory or in a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compress/feedback_spec.h"
#include "compress/kernels.h"
#include "tensor/tensor.h"

namespace thinwire {

// Bytes of one stored row of so many elements.
uint64_t StoredRowBytes(StateStorage store, int64_t elements);

struct StateStoreOptions {
  StateStorage store = StateStorage::kF32;
  int64_t elements = 0;      // of a row
  uint64_t limit_bytes = 0;  // of all rows; 0: none
  std::string dir;           // empty: memory; otherwise an unnamed file in this folder
  Device* device = nullptr;  // where rows are read and changed; outlives the store
  CodecKernels* kernels = nullptr;
};

// Rows are numbered in the order in which they were added. One thread at a time; a row stays open
// (Load, ToWrite) until the next one is.
class StateStore {
 public:
  static constexpr size_t kAbsent = SIZE_MAX;

  // An error names the folder in which no file could be made.
  static absl::StatusOr<std::unique_ptr<StateStore>> New(const StateStoreOptions& options);
  virtual ~StateStore() = default;

  const StateStoreOptions& options() const { return options_; }
  uint64_t row_bytes() const { return row_bytes_; }
  size_t capacity() const { return capacity_; }  // rows within the limit
  // Of every row, by its number.
  const std::vector<uint64_t>& keys() const { return keys_; }

  // The row's number, or kAbsent.
  size_t Find(uint64_t key) const;
  // A new row, which must be written before it is loaded. Requires that it is absent and that
  // there is room. ResourceExhausted when there is no memory.
  absl::StatusOr<size_t> Add(uint64_t key);
  // Forgets all rows.
  void Clear();

  // The row's values, [elements] of fp32 on the device; of kAbsent: zeros, not to be written. What
  // the caller changes there is undefined until Save.
  virtual absl::StatusOr<TensorView> Load(size_t row) = 0;
  // The same without the values that were there.
  virtual absl::StatusOr<TensorView> ToWrite(size_t row) = 0;
  // Stores the open row as it is now. A row with NaN or infinity is kept by fp32 and fp16; q8 and
  // q4 store zeros for it.
  virtual absl::Status Save(size_t row) = 0;

  // The stored bytes, row_bytes() of them in host memory: what checkpoints hold. Restore adds the
  // row or replaces it; InvalidArgument when the size differs, ResourceExhausted when the limit is
  // met.
  virtual absl::Status ReadStored(size_t row, absl::Span<uint8_t> to) = 0;
  absl::Status Restore(uint64_t key, absl::Span<const uint8_t> stored);

  // Of the row's key and stored bytes.
  absl::StatusOr<uint64_t> RowDigest(size_t row);

 protected:
  explicit StateStore(const StateStoreOptions& options);
  // Makes room for rows up to number `row`.
  virtual absl::Status Grow(size_t row) = 0;
  virtual absl::Status WriteStored(size_t row, absl::Span<const uint8_t> from) = 0;
  // The stored bytes where they lie, or copied to memory that the next call overwrites.
  virtual absl::StatusOr<const uint8_t*> Stored(size_t row) = 0;

 private:
  const StateStoreOptions options_;
  const uint64_t row_bytes_;
  const size_t capacity_;
  std::vector<uint64_t> keys_;
  absl::flat_hash_map<uint64_t, size_t> rows_;
};

}  // namespace thinwire
