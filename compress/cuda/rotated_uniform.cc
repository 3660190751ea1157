#include <algorithm>

#include "compress/bytes.h"
#include "compress/cpu/range_line.h"
#include "compress/cpu/rotation.h"
#include "compress/cuda/codecs.h"
#include "compress/cuda/hadamard.h"
#include "compress/cuda/uniform.h"
#include "compress/layout.h"
#include "compress/refusals.h"

namespace thinwire {

Error CudaRotatedUniformEncode(CudaDevice* device, const CodecSpec& spec, const TensorView& x,
                               const KernelContext& context, const PayloadTarget& payload) {
  if (payload.capacity < kRotationKeyBytes) {
    return MakeError(kRefused, "uniform: payload memory of %zu bytes, want at least %zu",
                     payload.capacity, kRotationKeyBytes);
  }
  const int64_t elements = x.elements();
  const uint32_t block = spec.rotation_block;
  CudaScratch rotated(device), report(device);  // the rotation reports what it refuses
  RETURN_ERROR(report.ReserveZeros(sizeof(uint32_t)));
  if (elements > 0) {
    RETURN_ERROR(rotated.Reserve(elements * sizeof(float)));
    const RotationLimit limit = {static_cast<float>(MostToRotate(block)), report.as<uint32_t>()};
    RETURN_ERROR(SubmitRotate(device, x, block, context.random_key, limit, rotated.as<float>()));
  }
  RETURN_ERROR(payload.Put(device, 0, context.random_key));
  // Rounding must be independent of the signs.
  KernelContext rounding;
  rounding.random_key = ~context.random_key;
  const Error error =
      CudaUniformEncode(device, WithoutRotation(spec), FloatsLike(x, rotated.as<float>()), rounding,
                        payload.behind(kRotationKeyBytes));
  *payload.bytes += kRotationKeyBytes;
  uint32_t refused = 0;
  RETURN_ERROR(device->CopyToHost(&refused, report.as<void>(), sizeof(refused)));
  if (refused == 0) return error;
  const float magnitude = FloatOf(refused);
  return IsFinite(magnitude) ? TooLargeToRotate(magnitude, block)
                             : CudaNonFiniteError(device, "uniform", x);
}

Error CudaRotatedUniformDecode(CudaDevice* device, const PayloadSource& payload,
                               const CodecSpec& spec, const KernelContext& context,
                               const TensorView& x) {
  if (payload.bytes < kRotationKeyBytes) return PayloadSource::Refused();
  const uint32_t block = spec.rotation_block;
  CudaScratch memory(device);
  float* rotated = static_cast<float*>(x.data);
  if (x.dtype != DType::kF32) {
    RETURN_ERROR(memory.Reserve(std::max<int64_t>(x.elements(), 1) * sizeof(float)));
    rotated = memory.as<float>();
  }
  RETURN_ERROR(CudaUniformDecode(device, payload.behind(kRotationKeyBytes), WithoutRotation(spec),
                                 context, FloatsLike(x, rotated)));
  if (x.elements() == 0) return Error{};
  CudaScratch report(device);
  RETURN_ERROR(report.ReserveZeros(sizeof(uint32_t)));
  const RotationLimit limit = {MostRotated(block), report.as<uint32_t>()};
  uint64_t key = 0;
  RETURN_ERROR(payload.Read(device, 0, &key));
  RETURN_ERROR(SubmitRotateBack(device, rotated, block, key, limit, x));
  uint32_t refused = 0;
  RETURN_ERROR(device->CopyToHost(&refused, report.as<void>(), sizeof(refused)));
  return refused == 0 ? Error{} : PayloadSource::Refused();
}

}  // namespace thinwire
