#include "config/stash.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/enum_names.h"
#include "base/status.h"
#include "compress/codecs/new_codec.h"
#include "compress/level.h"
#include "config/checks.h"
#include "config/codec_config.h"
#include "config/direction.h"
#include "config/specs.h"
#include "config/tensor_parts.h"

namespace thinwire {
namespace {

constexpr char kStashSection[] = "pipeline.stash";
constexpr char kPayload[] = "payload", kDecoded[] = "decoded";

absl::Status RefuseOfStash(const std::string& field, const std::string& value,
                           const std::string& want) {
  return absl::InvalidArgumentError(
      absl::StrCat(kStashSection, field, ": ", value, ", want ", want));
}

// Checks what a stash has nothing to do with.
absl::Status CheckOfStash(const Experiment& e, const DirectionSpec& does) {
  const DirectionConfig& stash = e.pipeline().stash();
  if (stash.has_level()) return RefuseOfStash(".level", "given", "none: a stash has one level");
  if (does.codec.scope == Scope::kChannel) {
    return RefuseOfStash(".scope", "channel",
                         "tensor, sample, token or group: tensors have no channels "
                         "where a ReLU has left only what is above zero");
  }
  if (PartsOf(e) > 1) {
    return RefuseOfStash("", absl::StrCat("with tensor.parts ", e.tensor().parts()),
                         "none: what a machine keeps would follow from the parts that it carries");
  }
  return absl::OkStatus();
}

// Returns the bits of an element in the longest payload of such a tensor, or as it is.
absl::StatusOr<double> BitsOf(const CodecSpec& codec, const Shape& shape, DType dtype) {
  ASSIGN_OR_RETURN(const auto made, NewCodec(codec, /*kernels=*/nullptr));
  const auto bytes = static_cast<double>(made->MaxPayloadBytes(shape, dtype));
  return std::min(8 * bytes / static_cast<double>(shape.elements()), 8.0 * SizeOf(dtype));
}

// Returns whether what a receiver decodes follows from the payload alone, in every epoch.
bool IsInPayload(const Experiment& e, const DirectionSpec& does) {
  const CompressionConfig& compression = e.compression();
  const bool always = compression.warmup_epochs() == 0 && compression.warmup_steps() == 0;
  return always && does.feedback.kind != FeedbackKind::kEf21 &&
         does.feedback.kind != FeedbackKind::kSplit &&
         does.codec.rotation != Rotation::kPrincipal && does.codec.outliers == 0;
}

// Returns the bits of activations of that shape which come through a cut.
absl::StatusOr<std::optional<double>> PayloadBits(const Experiment& e, const std::string& cut,
                                                  const Shape& shape, DType dtype) {
  ASSIGN_OR_RETURN(const DirectionSpec does,
                   DirectionFrom(DirectionOf(e, cut, /*gradient=*/false), /*gradient=*/false));
  if (!KeepsPayloads(e) || !IsInPayload(e, does)) return std::nullopt;
  ASSIGN_OR_RETURN(const double bits, BitsOf(Largest(does.codec, does.level), shape, dtype));
  // A receiver keeps no payload of more than half the bytes.
  if (2 * bits > 8.0 * SizeOf(dtype)) return std::nullopt;
  return bits;
}

}  // namespace

absl::Status ResolveStash(Experiment* e) {
  PipelineConfig* const pipeline = e->mutable_pipeline();
  RETURN_IF_ERROR(
      CheckName("pipeline.received", "form", pipeline->received(), {kPayload, kDecoded}));
  if (!pipeline->has_stash()) return absl::OkStatus();
  DirectionConfig* const stash = pipeline->mutable_stash();
  ASSIGN_OR_RETURN(const Model model, ModelFrom(*e));
  if (model.tokens) FillScopeOfTokens(stash);
  RETURN_IF_ERROR(ResolveDirection(kStashSection, /*gradient=*/false, stash));
  RETURN_IF_ERROR(
      CheckRemembersNothing(kStashSection, *stash, /*gradient=*/false, "a stash remembers"));
  ASSIGN_OR_RETURN(const DirectionSpec does, DirectionFrom(*stash, /*gradient=*/false));
  return CheckOfStash(*e, does);
}

absl::StatusOr<std::optional<DirectionSpec>> StashFrom(const Experiment& experiment) {
  if (!experiment.pipeline().has_stash()) return std::nullopt;
  ASSIGN_OR_RETURN(const DirectionSpec does,
                   DirectionFrom(experiment.pipeline().stash(), /*gradient=*/false));
  if (does.codec.is_exact()) return std::nullopt;
  return does;
}

bool KeepsPayloads(const Experiment& experiment) {
  return experiment.pipeline().received() == kPayload;
}

absl::StatusOr<KeptBits> KeptBitsOf(const Experiment& experiment, const Partition& partition) {
  const Shape usual = {1, 512, 128};
  KeptBits bits;
  ASSIGN_OR_RETURN(const DType compute, ComputeFrom(experiment));
  ASSIGN_OR_RETURN(const auto stash, StashFrom(experiment));
  if (stash) {
    ASSIGN_OR_RETURN(bits.stash, BitsOf(stash->codec, usual, compute));
  }
  bits.payloads.resize(partition.cuts.size() + 1);
  for (size_t i = 0; i < partition.cuts.size(); ++i) {
    const Cut& cut = partition.cuts[i];
    ASSIGN_OR_RETURN(
        bits.payloads[i + 1],
        PayloadBits(experiment, cut.name, partition.model.blocks[cut.block].out, compute));
  }
  return bits;
}

}  // namespace thinwire
