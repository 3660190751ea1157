#include "compress/cuda/entropy_codec.h"

#include "compress/cuda/entropy_frame.h"

namespace thinwire {

Error CudaEncodeFrame(CudaDevice* device, CudaEncode* encode, const CodecSpec& spec,
                      const TensorView& x, const KernelContext& context, const CodesView& codes,
                      const PayloadBuffer& payload, bool* is_frame) {
  CudaScratch memory(device);
  RETURN_ERROR(memory.Reserve(payload.capacity + 1));
  auto* const bytes = memory.as<uint8_t>();
  size_t n = 0, length = 0;
  const PayloadBuffer coded = {bytes, payload.capacity, &n, /*is_on_device=*/true};
  RETURN_ERROR(encode(device, spec, x, context, coded));
  const CodesPlace place = {
      codes.begin, codes.count, {codes.distances, codes.distances + codes.num_distances}};
  RETURN_ERROR(CudaEntropyFrame(device, bytes, n, place, payload.data, &length));
  *is_frame = length > 0;
  *payload.bytes = *is_frame ? length : n;
  return *is_frame ? Error{} : device->CopyToHost(payload.data, bytes, n);
}

Error CudaDecodeFrame(CudaDevice* device, CudaDecode* decode, const PayloadView& frame, size_t most,
                      const CodecSpec& spec, const KernelContext& context, const TensorView& x) {
  CudaScratch memory(device);
  size_t n = 0;
  RETURN_ERROR(CudaReadEntropyFrame(device, {frame.data, frame.bytes}, most, &memory, &n));
  const PayloadView coded = {memory.as<const uint8_t>(), n, /*is_on_device=*/true};
  return decode(device, coded, spec, context, x);
}

}  // namespace thinwire
