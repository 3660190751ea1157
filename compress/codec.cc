#include "compress/codec.h"

#include "base/status.h"
#include "compress/blockwise8.h"
#include "compress/cast.h"
#include "compress/fp8.h"
#include "compress/layout.h"
#include "compress/lossless.h"
#include "compress/low_rank.h"
#include "compress/plugin_codec.h"
#include "compress/sparse.h"
#include "compress/supported.h"
#include "compress/uniform.h"

namespace thinwire {
namespace {

// The others send positions or derive them, and do so among the supported entries.
bool IsSupportedFromOutside(const CodecSpec& spec) {
  if (spec.indices == Indices::kShared) return true;
  return spec.support == Support::kReceivedNonzero && spec.kind != CodecKind::kTopK &&
         spec.kind != CodecKind::kThreshold && spec.kind != CodecKind::kRandomK;
}

CodecSpec WithoutSupport(CodecSpec spec) {
  if (spec.indices == Indices::kShared) return CodecOfValues(spec);
  spec.support = Support::kAll;
  return spec;
}

CodecSpec WithoutLossless(CodecSpec spec) {
  spec.lossless = Lossless::kNone;
  return spec;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Codec>> NewCodec(const CodecSpec& spec, CodecKernels* kernels) {
  RETURN_IF_ERROR(CheckSpec(spec));
  if (spec.lossless == Lossless::kZstd) {
    ASSIGN_OR_RETURN(std::unique_ptr<Codec> inner, NewCodec(WithoutLossless(spec), kernels));
    return NewLosslessCodec(spec, std::move(inner));
  }
  if (IsSupportedFromOutside(spec)) {
    ASSIGN_OR_RETURN(std::unique_ptr<Codec> inner, NewCodec(WithoutSupport(spec), kernels));
    return NewSupportedCodec(spec, std::move(inner), kernels);
  }
  switch (spec.kind) {
    case CodecKind::kNone:
    case CodecKind::kFp16:
    case CodecKind::kBf16:
      return NewCastCodec(spec, kernels);
    case CodecKind::kUniform:
      return NewUniformCodec(spec, kernels);
    case CodecKind::kTopK:
    case CodecKind::kThreshold:
    case CodecKind::kRandomK:
      return NewSparseCodec(spec, kernels);
    case CodecKind::kFp8:
      return NewFp8Codec(spec, kernels);
    case CodecKind::kLowRank:
      return NewLowRankCodec(spec, kernels);
    case CodecKind::kBlockwise8:
      return NewBlockwise8Codec(spec, kernels);
    case CodecKind::kPlugin:
      return NewPluginCodec(spec, kernels);
  }
  return absl::InternalError("codec: kind passed the check and is not known");
}

}  // namespace thinwire
