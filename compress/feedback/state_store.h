// Store of what a compensator remembers: rows of fp32 numbers, one per sample that a message may
// hold, found by a 64-bit key. Rows are stored as fp32 or encoded by bit-specified codecs, so that
// two ends which store equal values hold equal bytes. They lie in memory or in a file.
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
#include "compress/feedback/options.h"
#include "compress/feedback/row_place.h"
#include "compress/feedback/spec.h"
#include "compress/kernels.h"
#include "tensor/tensor.h"

namespace thinwire {

// Returns the bytes of one stored row of `elements` elements.
uint64_t StoredRowBytes(StateStorage store, int64_t elements);

// Rows by key, numbered in the order in which they were added. One thread at a time; rows on a
// device that is not the host go to another thread after Finish.
class StateStore {
 public:
  static constexpr size_t kAbsent = SIZE_MAX;

  // Makes an empty store of rows like options.sample, which are read and changed on options.device.
  // An error names the folder in which no file could be made.
  static absl::StatusOr<std::unique_ptr<StateStore>> New(const FeedbackOptions& options);

  const FeedbackOptions& options() const { return options_; }
  size_t row_bytes() const { return row_bytes_; }  // as stored
  size_t capacity() const { return capacity_; }    // rows within the limit
  // Returns the keys of all rows, by the row's number.
  const std::vector<uint64_t>& keys() const { return keys_; }

  // Returns the row's number, or kAbsent.
  size_t Find(uint64_t key) const;
  // Adds a row, to be saved before it is loaded, and returns its number. Requires that it is absent
  // and within the capacity. ResourceExhausted if there is no memory.
  absl::StatusOr<size_t> Add(uint64_t key);
  // Forgets all rows.
  absl::Status Clear();

  // Returns how many rows can be open (Load, ToWrite) at once: all if they are changed in place,
  // otherwise one, until the next is opened.
  size_t most_open() const { return in_place_ ? SIZE_MAX : 1; }
  // Opens a row and returns its values, [elements] of fp32 on the device. The caller may change
  // them and then saves the row.
  absl::StatusOr<TensorView> Load(size_t row);
  // Opens a row whose old values do not matter, because the caller writes all of them.
  TensorView ToWrite(size_t row);
  // Stores the open row. fp32 and fp16 keep NaN and infinity; q8 and q4 store a row with one as
  // zeros.
  absl::Status Save(size_t row);

  // Copies the stored bytes, which checkpoints hold, to `to`: row_bytes() of host memory.
  absl::Status ReadStored(size_t row, absl::Span<uint8_t> to);
  // Adds the row or replaces it. InvalidArgument if the size is another, ResourceExhausted if the
  // limit is met.
  absl::Status Restore(uint64_t key, absl::Span<const uint8_t> stored);

  // Returns a digest of the row's key and stored bytes.
  absl::StatusOr<uint64_t> RowDigest(size_t row);

 private:
  explicit StateStore(const FeedbackOptions& options);
  absl::Status MakePlace();
  TensorView RowView(void* data) const;
  absl::Status EncodeRow(const TensorView& values, uint8_t* to) const;
  absl::Status DecodeRow(const uint8_t* from, const TensorView& values) const;
  absl::StatusOr<const uint8_t*> Stored(size_t row);

  const FeedbackOptions options_;
  const size_t row_bytes_;
  const size_t capacity_;
  const bool in_place_;  // fp32 in memory: rows lie on the device and are changed where they are
  std::unique_ptr<RowPlace> place_;
  std::shared_ptr<Buffer> open_;    // the open row's values, unless in place
  std::shared_ptr<Buffer> copied_;  // a row in place on a device that the host cannot read
  std::vector<uint64_t> keys_;
  absl::flat_hash_map<uint64_t, size_t> rows_;
};

}  // namespace thinwire
