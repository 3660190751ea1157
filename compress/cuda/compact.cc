#include "compress/cuda/bitmap.h"
#include "compress/cuda/entry_list.h"
#include "compress/cuda/kernels.h"
#include "compress/cuda/sparse_writer.h"
#include "tensor/cuda/error.h"

namespace thinwire {

Error CudaKernels::Compact(const TensorView& x, const SupportView& support,
                           const TensorView& compact) {
  RankedBitmap ranked(device_);
  RETURN_ERROR(ranked.Submit(WordsOf(&support), support.elements));
  EntryList list;
  list.values = compact;
  return SubmitEntryList(device_, x, ranked.bits(), list);
}

Error CudaKernels::Expand(const TensorView& compact, const SupportView& support,
                          const TensorView& x) {
  RankedBitmap ranked(device_);
  RETURN_ERROR(ranked.Submit(WordsOf(&support), support.elements));
  const bool is_wide = compact.dtype == DType::kF32;
  const WireValues values = {compact.data, is_wide ? Values::kF32 : Values::kBF16, 1};
  return SubmitSparse(device_, ranked.bits(), values, support.count, x, /*fault=*/nullptr);
}

}  // namespace thinwire
