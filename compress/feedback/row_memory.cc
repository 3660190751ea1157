#include <algorithm>
#include <vector>

#include "base/status.h"
#include "compress/feedback/row_place.h"
#include "tensor/tensor.h"

namespace thinwire {
namespace {

// Sizes of slabs. Each is twice as large as the one before, so that a small state takes little
// memory and few slabs hold gigabytes. The largest is large enough for the pool's rounding to waste
// little.
constexpr size_t kFirstSlabBytes = size_t{64} << 10;
constexpr size_t kLargestSlabBytes = size_t{16} << 20;
constexpr size_t kAlignment = 64;

class RowMemory final : public RowPlace {
 public:
  RowMemory(Device* device, size_t row_bytes, size_t most_rows)
      : device_(device),
        stride_(std::max<size_t>((row_bytes + kAlignment - 1) / kAlignment, 1) * kAlignment),
        most_rows_(most_rows) {}

  absl::Status Grow() override {
    if (free_rows_ == 0) {
      const size_t rows =
          std::max<size_t>(std::min(slab_bytes_ / stride_, most_rows_ - rows_.size()), 1);
      ASSIGN_OR_RETURN(auto slab, Buffer::Allocate(device_, rows * stride_));
      next_ = static_cast<uint8_t*>(slab->data());
      slabs_.push_back(std::move(slab));
      free_rows_ = rows;
      slab_bytes_ = std::min(2 * slab_bytes_, kLargestSlabBytes);
    }
    rows_.push_back(next_);
    next_ += stride_;
    --free_rows_;
    return absl::OkStatus();
  }
  absl::StatusOr<uint8_t*> Read(size_t row) override { return rows_[row]; }
  uint8_t* ToWrite(size_t row) override { return rows_[row]; }
  absl::Status Write(size_t /*row*/) override { return absl::OkStatus(); }

 private:
  Device* const device_;
  const size_t stride_;
  const size_t most_rows_;
  std::vector<std::shared_ptr<Buffer>> slabs_;
  std::vector<uint8_t*> rows_;           // address of each row
  size_t slab_bytes_ = kFirstSlabBytes;  // size of the next slab
  uint8_t* next_ = nullptr;              // first unused row of the last slab
  size_t free_rows_ = 0;                 // unused rows from next_ on
};

}  // namespace

std::unique_ptr<RowPlace> NewRowMemory(Device* device, size_t row_bytes, size_t most_rows) {
  return std::make_unique<RowMemory>(device, row_bytes, most_rows);
}

}  // namespace thinwire
