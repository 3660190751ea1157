#include "compress/cuda/bitmap.h"
#include "compress/cuda/entry_list.h"
#include "compress/cuda/operations.h"
#include "compress/cuda/sparse_writer.h"
#include "tensor/cuda/error.h"

namespace thinwire {
namespace {

// Support with tile offsets; holds their memory until what was submitted has used it.
class RankedSupport {
 public:
  explicit RankedSupport(CudaDevice* device) : offsets_(device) {}
  Error Submit(cudaStream_t stream, const SupportView& support) {
    RETURN_ERROR(offsets_.Reserve(TileOffsetsBytes(support.elements)));
    bits_ = {WordsOf(&support), offsets_.as<uint64_t>()};
    return SubmitTileOffsets(stream, bits_.words, support.elements, offsets_.as<uint64_t>());
  }
  const RankedBits& bits() const { return bits_; }

 private:
  CudaScratch offsets_;
  RankedBits bits_;
};

}  // namespace

Error CudaCompact(CudaDevice* device, const TensorView& x, const SupportView& support,
                  const TensorView& compact) {
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  RankedSupport ranked(device);
  RETURN_ERROR(ranked.Submit(stream, support));
  EntryList list;
  list.values = compact.data;
  list.values_dtype = compact.dtype;
  return SubmitEntryList(stream, x, ranked.bits(), list);
}

Error CudaExpand(CudaDevice* device, const TensorView& compact, const SupportView& support,
                 const TensorView& x) {
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  RankedSupport ranked(device);
  RETURN_ERROR(ranked.Submit(stream, support));
  const bool is_wide = compact.dtype == DType::kF32;
  const WireValues values = {compact.data, is_wide ? Values::kF32 : Values::kBF16, 1};
  return SubmitSparse(stream, ranked.bits(), values, support.count, x, /*fault=*/nullptr);
}

}  // namespace thinwire
