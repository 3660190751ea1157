// Elements that a seed's random draws choose (docs/compression.md, randomk).
#pragma once

#include <cstdint>

#include "compress/cuda/entry_list.h"
#include "compress/kernels.h"
#include "compress/layout.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// Chosen elements, in device memory. The kernels of topk's choice find the K highest draws
// (keys.h).
class ChosenByDraw {
 public:
  explicit ChosenByDraw(CudaDevice* device) : device_(device) {}

  // Chooses the elements. Only launches kernels. `support` may be null.
  Error Submit(const Scopes& scopes, const CodecSpec& spec, uint64_t seed,
               const SupportView* support);
  const RankedBits& bits() const { return ranked_.bits(); }
  // Returns the number of chosen elements, in device memory.
  const uint64_t* count() const { return ranked_.count(); }

 private:
  CudaDevice* const device_;
  CudaScratch kept_{device_};
  RankedBitmap ranked_{device_};
};

// Factors by which kept values are multiplied: fp32(n / K), where n elements of the value's scope
// drew and K of them are kept.
struct DrawFactors {
  Scopes scopes;
  int64_t most = 0;                  // most that are kept of a scope
  const uint32_t* counts = nullptr;  // elements of each scope that drew, on the device; null: all
};

// Multiplies values[0, *count), which stand at the elements `indices` (null if factors.counts is).
// Raises *largest to at least the magnitude bits of each product. `most` is at least *count.
Error SubmitDrawFactors(CudaDevice* device, const DrawFactors& factors, const uint32_t* indices,
                        const uint64_t* count, int64_t most, float* values, uint32_t* largest);

}  // namespace thinwire
