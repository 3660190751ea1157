#include "compress/cuda/kept.h"

#include "compress/cuda/bitmap.h"
#include "compress/cuda/block_select.h"
#include "compress/cuda/channels.h"
#include "compress/cuda/draws.h"
#include "compress/cuda/radix_select.h"
#include "compress/cuda/select.h"
#include "tensor/cuda/error.h"

namespace thinwire {
namespace {

Error SubmitSelect(CudaDevice* device, cudaStream_t stream, const Keys& keys, const KeepRule& rule,
                   uint32_t* kept, uint32_t* nonfinite) {
  if (IsSmallScope(keys.elements)) {
    return SubmitSelectInSmallScopes(stream, keys, rule, kept, nonfinite);
  }
  if (IsScopeOfBlock(keys, device->multiprocessors())) {
    return SubmitSelectInScopesOfBlocks(stream, keys, rule, kept, nonfinite);
  }
  return SubmitSelectInLargeScopes(device, stream, keys, rule, kept, nonfinite);
}

// Selects in a copy whose channels lie one after the other.
Error SubmitSelectInChannels(CudaDevice* device, cudaStream_t stream, const Keys& keys,
                             int64_t channels, const KeepRule& rule, uint32_t* kept,
                             uint32_t* nonfinite) {
  CudaScratch copy(device), of_copy(device);
  RETURN_ERROR(copy.Reserve(keys.total * SizeOf(keys.dtype)));
  RETURN_ERROR(of_copy.ReserveZeros(BitmapBytes(keys.total)));
  RETURN_ERROR(SubmitTranspose(stream, keys, channels, copy.as<void>()));
  Keys columns = keys;
  columns.data = copy.as<void>();
  columns.support = nullptr;
  RETURN_ERROR(SubmitSelect(device, stream, columns, rule, of_copy.as<uint32_t>(), nonfinite));
  return SubmitTransposeBits(stream, of_copy.as<uint32_t>(), keys.elements, channels, kept);
}

}  // namespace

Error SubmitKeepLargest(CudaDevice* device, cudaStream_t stream, const Keys& keys,
                        const Scopes& scopes, const KeepRule& rule, uint32_t* kept,
                        uint32_t* nonfinite) {
  CUDA_RETURN_IF_ERROR(cudaMemsetAsync(kept, 0, BitmapBytes(scopes.total), stream));
  if (scopes.total == 0) return Error{};
  Keys of_scopes = keys;
  of_scopes.total = scopes.total;
  of_scopes.elements = scopes.elements;
  const bool is_turned = scopes.strided && scopes.count > 1 && scopes.elements > 1;
  CudaScratch draws(device);
  if (keys.data == nullptr && (is_turned || IsSmallScope(scopes.elements))) {
    RETURN_ERROR(draws.Reserve(DrawsBytes(scopes.total)));
    RETURN_ERROR(SubmitDraws(stream, keys.seed, scopes.total, draws.as<void>()));
    of_scopes.data = draws.as<void>();
  }
  if (!is_turned) return SubmitSelect(device, stream, of_scopes, rule, kept, nonfinite);
  return SubmitSelectInChannels(device, stream, of_scopes, scopes.count, rule, kept, nonfinite);
}

}  // namespace thinwire
