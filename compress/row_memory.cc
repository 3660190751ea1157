#include <algorithm>
#include <vector>

#include "base/status.h"
#include "compress/row_place.h"
#include "tensor/tensor.h"

namespace thinwire {
namespace {

// Large enough that few slabs hold gigabytes and that the pool's rounding wastes little.
constexpr size_t kSlabBytes = size_t{16} << 20;
constexpr size_t kAlignment = 64;

class RowMemory final : public RowPlace {
 public:
  RowMemory(Device* device, size_t row_bytes, size_t most_rows)
      : device_(device),
        stride_(std::max<size_t>((row_bytes + kAlignment - 1) / kAlignment, 1) * kAlignment),
        rows_per_slab_(std::max<size_t>(std::min(kSlabBytes / stride_, most_rows), 1)) {}

  absl::Status Grow() override {
    if (num_rows_ == slabs_.size() * rows_per_slab_) {
      ASSIGN_OR_RETURN(auto slab, Buffer::Allocate(device_, rows_per_slab_ * stride_));
      slabs_.push_back(std::move(slab));
    }
    ++num_rows_;
    return absl::OkStatus();
  }
  absl::StatusOr<uint8_t*> Read(size_t row) override { return ToWrite(row); }
  uint8_t* ToWrite(size_t row) override {
    uint8_t* slab = static_cast<uint8_t*>(slabs_[row / rows_per_slab_]->data());
    return slab + row % rows_per_slab_ * stride_;
  }
  absl::Status Write(size_t /*row*/) override { return absl::OkStatus(); }

 private:
  Device* const device_;
  const size_t stride_;
  const size_t rows_per_slab_;
  std::vector<std::shared_ptr<Buffer>> slabs_;
  size_t num_rows_ = 0;
};

}  // namespace

std::unique_ptr<RowPlace> NewRowMemory(Device* device, size_t row_bytes, size_t most_rows) {
  return std::make_unique<RowMemory>(device, row_bytes, most_rows);
}

}  // namespace thinwire
