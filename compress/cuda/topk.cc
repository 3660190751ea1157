#include "compress/cpu/entries_header.h"
#include "compress/cuda/codecs.h"
#include "compress/cuda/entries.h"
#include "compress/cuda/kept.h"
#include "compress/layout.h"
#include "tensor/cuda/error.h"

namespace thinwire {

// With a support zeros are never sent, and entries without it are zeros here, so all that is kept
// has support.
Error SubmitTopKEncode(CudaDevice* device, const TensorView& x, const CodecSpec& spec,
                       const KernelContext& context, EntriesOnDevice* payload) {
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  RETURN_ERROR(payload->Reserve(x, spec, context, MostEntries(spec, scopes)));
  const KeepRule rule = {NumKept(spec, scopes.elements), NumKept(spec, scopes.of_last()),
                         spec.pad == Pad::kExactK};
  RETURN_ERROR(SubmitKeepLargest(device, KeysOf(x, context.support), scopes, rule, payload->kept(),
                                 &payload->plan()->nonfinite));
  return payload->Submit();
}

Error CudaTopKEncode(CudaDevice* device, const CodecSpec& spec, const TensorView& x,
                     const KernelContext& context, const PayloadTarget& payload) {
  RETURN_ERROR(CheckElements(spec, x.elements()));
  EntriesOnDevice on_device(device);
  RETURN_ERROR(SubmitTopKEncode(device, x, spec, context, &on_device));
  return on_device.CopyTo(payload);
}

}  // namespace thinwire
