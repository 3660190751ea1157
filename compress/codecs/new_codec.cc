#include "compress/codecs/new_codec.h"

#include "base/status.h"
#include "compress/codec_table.h"
#include "compress/codecs/stack.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

// True for codecs whose support is handled by a codec around them. The others send or derive
// positions, and do so among the supported entries.
bool IsSupportedFromOutside(const CodecSpec& spec) {
  if (spec.indices == Indices::kShared) return true;
  return spec.support == Support::kReceivedNonzero && !CodecRowOf(spec.kind).has_positions;
}

CodecSpec WithoutSupport(CodecSpec spec) {
  if (spec.indices == Indices::kShared) return CodecOfValues(spec);
  spec.support = Support::kAll;
  return spec;
}

CodecSpec WithoutRotation(CodecSpec spec) {
  spec.rotation = Rotation::kNone;
  spec.rotation_every = 0;
  return spec;
}

// Returns `spec` without the lossless stage. Under rate_distortion that stage chooses the codes,
// beginning with those of the dead zone.
CodecSpec WithoutLossless(CodecSpec spec) {
  spec.lossless = Lossless::kNone;
  if (spec.rounding == Rounding::kRateDistortion) spec.rounding = Rounding::kDeadZone;
  return spec;
}

// True for low_rank, whose payload the host reads for the next message's start.
bool LeavesFactor(const CodecSpec& spec) { return CodecRowOf(spec.kind).has(CodecRow::kRank); }

// Returns whether NewKernelCodec makes the codec, before what goes around it.
bool IsOfKernels(const CodecSpec& spec) {
  return !CodecRowOf(spec.kind).is_plugin && !LeavesFactor(spec) && !IsSupportedFromOutside(spec);
}

// Returns the kernels' own lossless stage, where the codec before it is theirs.
EntropyKernels* EntropyOf(const CodecSpec& spec, CodecKernels* kernels) {
  const bool has_stage = spec.lossless == Lossless::kEntropy && IsOfKernels(spec);
  return kernels == nullptr || !has_stage ? nullptr : kernels->entropy();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Codec>> NewCodec(const CodecSpec& spec, CodecKernels* kernels) {
  RETURN_IF_ERROR(CheckSpec(spec));
  if (spec.divides()) return NewDividedCodec(spec, kernels);
  if (spec.rotation == Rotation::kPrincipal) {
    ASSIGN_OR_RETURN(std::unique_ptr<Codec> inner, NewCodec(WithoutRotation(spec), kernels));
    return NewPrincipalCodec(spec, std::move(inner), kernels);
  }
  if (spec.rate > 0) return NewRatedCodec(spec, kernels);
  if (spec.lossless != Lossless::kNone) {
    ASSIGN_OR_RETURN(std::unique_ptr<Codec> inner, NewCodec(WithoutLossless(spec), kernels));
    return NewLosslessCodec(spec, std::move(inner), EntropyOf(spec, kernels));
  }
  if (IsSupportedFromOutside(spec)) {
    ASSIGN_OR_RETURN(std::unique_ptr<Codec> inner, NewCodec(WithoutSupport(spec), kernels));
    return NewSupportedCodec(spec, std::move(inner), kernels);
  }
  if (CodecRowOf(spec.kind).is_plugin) return NewPluginCodec(spec, kernels);
  if (LeavesFactor(spec)) return NewLowRankCodec(spec, kernels);
  return NewKernelCodec(spec, kernels);
}

bool CodesOnDevice(const CodecSpec& spec, const CodecKernels& kernels) {
  const bool is_alone = !spec.divides() && spec.rotation != Rotation::kPrincipal &&
                        spec.rate == 0 && spec.lossless == Lossless::kNone;
  return kernels.codes_on_device() && is_alone && IsOfKernels(spec);
}

}  // namespace thinwire
