#include "compress/cuda/kept.h"

#include "compress/cuda/bitmap.h"
#include "compress/cuda/key_copies.h"
#include "compress/cuda/select.h"
#include "tensor/cuda/error.h"

namespace thinwire {
namespace {

Error SubmitSelect(CudaDevice* device, const Keys& keys, const KeepRule& rule, uint32_t* kept,
                   uint32_t* nonfinite) {
  if (IsSmallScope(keys.elements)) {
    return SubmitSelectInSmallScopes(device, keys, rule, kept, nonfinite);
  }
  if (IsScopeOfBlock(keys, device->multiprocessors())) {
    return SubmitSelectInScopesOfBlocks(device, keys, rule, kept, nonfinite);
  }
  return SubmitSelectInLargeScopes(device, keys, rule, kept, nonfinite);
}

// Selects in a copy whose channels lie one after the other.
Error SubmitSelectInChannels(CudaDevice* device, const Keys& keys, int64_t channels,
                             const KeepRule& rule, uint32_t* kept, uint32_t* nonfinite) {
  CudaScratch copy(device), of_copy(device);
  RETURN_ERROR(copy.Reserve(keys.total * SizeOf(keys.dtype)));
  RETURN_ERROR(of_copy.ReserveZeros(BitmapBytes(keys.total)));
  RETURN_ERROR(SubmitTranspose(device, keys, channels, copy.as<void>()));
  Keys columns = keys;
  columns.data = copy.as<void>();
  columns.support = nullptr;
  RETURN_ERROR(SubmitSelect(device, columns, rule, of_copy.as<uint32_t>(), nonfinite));
  return SubmitTransposeBits(device, of_copy.as<uint32_t>(), keys.elements, channels, kept);
}

}  // namespace

Error SubmitKeepLargest(CudaDevice* device, const Keys& keys, const Scopes& scopes,
                        const KeepRule& rule, uint32_t* kept, uint32_t* nonfinite) {
  RETURN_ERROR(device->SubmitZeros(kept, BitmapBytes(scopes.total)));
  if (scopes.total == 0) return Error{};
  Keys of_scopes = keys;
  of_scopes.total = scopes.total;
  of_scopes.elements = scopes.elements;
  const bool is_turned = scopes.strided && scopes.count > 1 && scopes.elements > 1;
  CudaScratch draws(device);
  if (keys.data == nullptr && (is_turned || IsSmallScope(scopes.elements))) {
    RETURN_ERROR(draws.Reserve(DrawsBytes(scopes.total)));
    RETURN_ERROR(SubmitDraws(device, keys.seed, scopes.total, draws.as<void>()));
    of_scopes.data = draws.as<void>();
  }
  if (!is_turned) return SubmitSelect(device, of_scopes, rule, kept, nonfinite);
  return SubmitSelectInChannels(device, of_scopes, scopes.count, rule, kept, nonfinite);
}

}  // namespace thinwire
