#include "compress/codec.h"

#include "base/status.h"
#include "compress/cast.h"
#include "compress/fp8.h"
#include "compress/topk.h"
#include "compress/uniform.h"

namespace thinwire {

absl::StatusOr<std::unique_ptr<Codec>> NewCodec(const CodecSpec& spec, CodecKernels* kernels) {
  RETURN_IF_ERROR(CheckSpec(spec));
  switch (spec.kind) {
    case CodecKind::kNone:
    case CodecKind::kFp16:
    case CodecKind::kBf16:
      return NewCastCodec(spec, kernels);
    case CodecKind::kUniform:
      return NewUniformCodec(spec, kernels);
    case CodecKind::kTopK:
      return NewTopKCodec(spec, kernels);
    case CodecKind::kFp8:
      return NewFp8Codec(spec, kernels);
    default:
      return absl::UnimplementedError(spec.ToString());
  }
  return absl::InternalError("codec: kind passed the check and is not known");
}

}  // namespace thinwire
