// Which parameters matter to which codec: the one list from which frames, experiment files and
// ToString() take it.
#pragma once

#include "compress/spec.h"

namespace thinwire {

// Calls visit(name, field, is_rare) for each parameter that matters to `spec` as it is, in the
// order in which people name them. `name` is that of the field in experiment files and in frames.
// A rare one goes without saying while it has its type's zero value. `visit` may set the field:
// parameters that depend on it come after it.
template <typename Spec, typename Visit>  // CodecSpec or const CodecSpec
void VisitParameters(Spec& spec, Visit&& visit) {
  constexpr bool kRare = true, kCommon = false;
  const auto scope = [&] {
    visit("scope", spec.scope, kCommon);
    if (spec.scope == Scope::kGroup) visit("group", spec.group, kCommon);
  };
  const auto grid = [&] {
    visit("bits", spec.bits, kCommon);
    visit("range", spec.range, kCommon);
    visit("rounding", spec.rounding, kCommon);
    if (spec.range == Range::kMinMax) visit("zero", spec.zero, kCommon);
  };
  const auto values = [&] {
    visit("values", spec.values, kCommon);
    if (spec.values != Values::kUniform) return;
    grid();
    visit("group", spec.group, kRare);
  };
  const auto kept = [&] {
    visit("ratio", spec.ratio, kRare);
    visit("k", spec.k, kRare);
    visit("scope", spec.scope, kCommon);
    visit("count", spec.count, kRare);
  };
  switch (spec.kind) {
    case CodecKind::kNone:
    case CodecKind::kFp16:
    case CodecKind::kBf16:
      break;
    case CodecKind::kUniform:
      visit("bits", spec.bits, kCommon);
      visit("range", spec.range, kCommon);
      scope();
      visit("rounding", spec.rounding, kCommon);
      if (spec.range == Range::kMinMax) visit("zero", spec.zero, kCommon);
      visit("rotation", spec.rotation, kRare);
      if (spec.rotation != Rotation::kNone) visit("rotation_block", spec.rotation_block, kCommon);
      break;
    case CodecKind::kTopK:
      visit("indices", spec.indices, kRare);
      if (spec.indices == Indices::kOwn) {
        kept();
        visit("pad", spec.pad, kRare);
      }
      values();
      break;
    case CodecKind::kFp8:
      visit("format", spec.format, kCommon);
      break;
    case CodecKind::kRandomK:
      kept();
      visit("unbiased", spec.unbiased, kRare);
      values();
      break;
    case CodecKind::kThreshold:
      visit("threshold", spec.threshold, kCommon);
      visit("relative_to", spec.relative_to, kRare);
      values();
      break;
    case CodecKind::kBlockwise8:
      visit("block", spec.block, kCommon);
      break;
    case CodecKind::kLowRank:
      visit("rank", spec.rank, kCommon);
      visit("per_sample", spec.per_sample, kRare);
      break;
    case CodecKind::kPlugin:
      visit("plugin", spec.plugin, kCommon);
      break;
  }
  const bool takes_support = spec.kind != CodecKind::kLowRank && spec.kind != CodecKind::kPlugin &&
                             spec.indices == Indices::kOwn;
  if (takes_support) visit("support", spec.support, kRare);
  visit("lossless", spec.lossless, kRare);
}

}  // namespace thinwire
