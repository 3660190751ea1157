// Which elements a seed's random draws choose (docs/compression.md, randomk).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cuda/entry_list.h"
#include "compress/kernels.h"
#include "compress/layout.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// The elements chosen, in device memory: topk's choice finds the K highest draws (keys.h).
class ChosenByDraw {
 public:
  explicit ChosenByDraw(CudaDevice* device) : device_(device), kept_(device), offsets_(device) {}

  // Launches only. `support` may be null.
  Error Submit(cudaStream_t stream, const Scopes& scopes, const CodecSpec& spec, uint64_t seed,
               const SupportView* support);
  RankedBits bits() const { return {kept_.as<uint32_t>(), offsets_.as<uint64_t>()}; }
  // How many are chosen, in device memory.
  const uint64_t* count() const { return count_; }

 private:
  CudaDevice* const device_;
  CudaScratch kept_, offsets_;
  const uint64_t* count_ = nullptr;
};

// By what a kept value is multiplied: fp32(n / K), n being the elements of its scope that drew and
// K those that are kept.
struct DrawFactors {
  Scopes scopes;
  int64_t most = 0;                  // kept of a scope
  const uint32_t* counts = nullptr;  // that drew, of each scope, in device memory; null: all
};

// Multiplies values[0, *count), which stand at the elements `indices`: null if factors.counts is.
// *largest becomes at least
// the magnitude bits of each product. `most` is at least *count.
Error SubmitDrawFactors(cudaStream_t stream, const DrawFactors& factors, const uint32_t* indices,
                        const uint64_t* count, int64_t most, float* values, uint32_t* largest);

}  // namespace thinwire
