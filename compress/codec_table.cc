#include "compress/codec_table.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/enum_names.h"
#include "compress/codec_checks.h"
#include "compress/layout.h"
#include "compress/low_rank_matrices.h"

namespace thinwire {
namespace {

bool Divides(uint32_t elements, int64_t width) { return elements > 0 && width % elements == 0; }

// True if scopes are rows or parts of rows.
bool IsByRows(const CodecSpec& spec, int64_t width) {
  return spec.scope == Scope::kToken || (spec.scope == Scope::kGroup && Divides(spec.group, width));
}

// True unless kept values share ranges or means across rows.
bool IsByValues(const CodecSpec& spec) {
  return spec.values != Values::kUniform && spec.values != Values::kMeans;
}

bool CastIsCausal(const CodecSpec&, int64_t) { return true; }

bool UniformIsCausal(const CodecSpec& spec, int64_t width) {
  return IsByRows(spec, width) &&
         (spec.rotation == Rotation::kNone || Divides(spec.rotation_block, width));
}

// Means, bits and what a rate takes are those of a whole message.
bool EcsqIsCausal(const CodecSpec& spec, int64_t width) {
  return IsByRows(spec, width) && !spec.has_means() && spec.rate == 0 &&
         spec.rounding != Rounding::kRateDistortion;
}

bool KeptIsCausal(const CodecSpec& spec, int64_t width) {
  return IsByRows(spec, width) && IsByValues(spec);
}

bool ThresholdIsCausal(const CodecSpec& spec, int64_t) {
  return spec.relative_to == RelativeTo::kAbsolute && IsByValues(spec);
}

bool BlockIsCausal(const CodecSpec& spec, int64_t width) { return Divides(spec.block, width); }

size_t CastBytes(const CodecSpec& spec, const Shape& shape, DType dtype) {
  return CastPayloadBytes(WireType(spec, dtype), shape.elements());
}

size_t Fp8Bytes(const CodecSpec&, const Shape& shape, DType) {
  return Fp8PayloadBytes(shape.elements());
}

size_t Blockwise8Bytes(const CodecSpec& spec, const Shape& shape, DType) {
  return Blockwise8PayloadBytes(spec.block, shape.elements());
}

// A rank above rows or columns counts as the smaller of these, although low_rank refuses it when it
// gets a tensor.
size_t LowRankBytes(const CodecSpec& spec, const Shape& shape, DType) {
  LowRankMatrices m = LowRankMatricesOf(shape, spec);
  m.rank = std::min({m.rank, m.rows, m.columns});
  return m.count * m.payload_bytes();
}

Scopes ScopesIn(const CodecSpec& spec, const Shape& shape) {
  return ScopesOf(shape, spec.scope, spec.group);
}

template <size_t (*kBytes)(const CodecSpec&, const Scopes&)>
size_t BytesOfScopes(const CodecSpec& spec, const Shape& shape, DType) {
  return kBytes(spec, ScopesIn(spec, shape));
}

size_t EcsqCodesBegin(const CodecSpec& spec, const Shape& coded) {
  return EcsqHeaderBytes(spec, ScopesIn(spec, coded));
}

bool Never(const CodecSpec&) { return false; }

// Returns whether the threshold follows the message. An absolute one keeps another share of a run's
// values than of normal ones, and no element of the error outgrows it.
bool IsRelative(const CodecSpec& spec) { return spec.relative_to != RelativeTo::kAbsolute; }

constexpr CodecRow Cast(CodecKind kind, const char* name, const char* description) {
  CodecRow row{kind, name, description};
  row.parameters = CodecRow::kSupport;
  row.is_causal = CastIsCausal;
  row.max_payload_bytes = CastBytes;
  row.carries_nonfinite = true;
  return row;
}

constexpr CodecRow None() {
  CodecRow row = Cast(CodecKind::kNone, "none", "the tensor's own bytes");
  row.is_lossless = true;
  return row;
}

constexpr CodecRow Fp8() {
  CodecRow row{CodecKind::kFp8, "fp8", "8-bit floats, scaled by a power of two per message"};
  row.parameters = CodecRow::kFormat | CodecRow::kSupport;
  row.is_causal = CastIsCausal;
  row.max_payload_bytes = Fp8Bytes;
  return row;
}

constexpr CodecRow Uniform() {
  CodecRow row{CodecKind::kUniform, "uniform", "codes of 1 to 8 bits on a uniform grid"};
  row.parameters = CodecRow::kGrid | CodecRow::kScope | CodecRow::kGroup | CodecRow::kRounding |
                   CodecRow::kHadamard | CodecRow::kOutliers | CodecRow::kSupport;
  row.check = CheckUniform;
  row.is_causal = UniformIsCausal;
  row.max_payload_bytes = BytesOfScopes<UniformMaxPayloadBytes>;
  row.level = LevelField::kBits;
  return row;
}

constexpr CodecRow Ecsq() {
  CodecRow row{CodecKind::kEcsq, "ecsq",
               "whole multiples of a step in root mean squares, entropy-coded"};
  row.parameters = CodecRow::kStep | CodecRow::kScope | CodecRow::kGroup | CodecRow::kRounding |
                   CodecRow::kReconstruction | CodecRow::kPrincipal | CodecRow::kOutliers |
                   CodecRow::kSupport;
  row.lossless = Lossless::kEntropy;
  row.gradient_rounding = Rounding::kDither;
  row.check = CheckEcsq;
  row.is_causal = EcsqIsCausal;
  row.max_payload_bytes = BytesOfScopes<EcsqMaxPayloadBytes>;
  row.codes_begin = EcsqCodesBegin;
  row.level = LevelField::kRate;
  return row;
}

// `topk` and `randomk`: K entries of each scope.
constexpr CodecRow Kept(CodecKind kind, const char* name, const char* description) {
  CodecRow row{kind, name, description};
  row.parameters = CodecRow::kKept | CodecRow::kScope | CodecRow::kValues | CodecRow::kSupport;
  row.scope = Scope::kSample;
  row.is_causal = KeptIsCausal;
  row.level = LevelField::kRatio;
  row.has_positions = true;
  return row;
}

constexpr CodecRow TopK() {
  CodecRow row =
      Kept(CodecKind::kTopK, "topk", "the K entries of largest magnitude, and where they stood");
  row.parameters |= CodecRow::kIndices | CodecRow::kPad | CodecRow::kGroup;
  row.check = CheckTopK;
  row.max_payload_bytes = BytesOfScopes<EntriesMaxPayloadBytes>;
  return row;
}

constexpr CodecRow RandomK() {
  CodecRow row =
      Kept(CodecKind::kRandomK, "randomk", "K random entries; both ends draw the same positions");
  row.parameters |= CodecRow::kUnbiased;
  row.check = CheckRandomK;
  row.max_payload_bytes = BytesOfScopes<RandomKMaxPayloadBytes>;
  return row;
}

constexpr CodecRow Threshold() {
  CodecRow row{CodecKind::kThreshold, "threshold", "entries of at least some magnitude"};
  row.parameters = CodecRow::kThreshold | CodecRow::kValues | CodecRow::kSupport;
  row.check = CheckThreshold;
  row.is_causal = ThresholdIsCausal;
  row.max_payload_bytes = BytesOfScopes<EntriesMaxPayloadBytes>;
  row.shows_contraction = IsRelative;
  row.has_positions = true;
  return row;
}

constexpr CodecRow Blockwise8() {
  CodecRow row{CodecKind::kBlockwise8, "blockwise8",
               "8-bit codebook with one absolute maximum per block (SWARM)"};
  row.parameters = CodecRow::kBlock | CodecRow::kSupport;
  row.check = CheckBlockwise8;
  row.is_causal = BlockIsCausal;
  row.max_payload_bytes = Blockwise8Bytes;
  return row;
}

// It projects, so feedback never expands.
constexpr CodecRow LowRank() {
  CodecRow row{CodecKind::kLowRank, "low_rank",
               "two factors of a warm-started power iteration (PowerSGD)"};
  row.parameters = CodecRow::kRank;
  row.check = CheckLowRank;
  row.max_payload_bytes = LowRankBytes;
  row.shows_contraction = Never;
  return row;
}

// It may do anything, and is for a stage to run.
constexpr CodecRow Plugin() {
  CodecRow row{CodecKind::kPlugin, "plugin", "your own library, see docs/add_a_codec.md"};
  row.parameters = CodecRow::kPlugin;
  row.check = CheckPlugin;
  row.shows_contraction = Never;
  row.carries_nonfinite = true;
  row.is_plugin = true;
  return row;
}

constexpr CodecRow kRows[] = {
    None(),
    Cast(CodecKind::kFp16, "fp16", "16-bit floats, scaled by a power of two per message"),
    Cast(CodecKind::kBf16, "bf16", "the upper half of each fp32"),
    Fp8(),
    Uniform(),
    Ecsq(),
    TopK(),
    RandomK(),
    Threshold(),
    Blockwise8(),
    LowRank(),
    Plugin(),
};

absl::Status RefuseNumber(const CodecSpec& spec) {
  return absl::InvalidArgumentError(absl::StrCat(
      "codec: unknown number ", static_cast<int>(spec.kind), ", want 0 to ", std::size(kRows) - 1));
}

}  // namespace

absl::Span<const CodecRow> CodecRows() { return kRows; }

const CodecRow& CodecRowOf(CodecKind kind) {
  static constexpr CodecRow kUnknown = [] {
    CodecRow row{CodecKind(), "unknown", ""};
    row.check = RefuseNumber;
    return row;
  }();
  for (const CodecRow& row : kRows) {
    if (row.value == kind) return row;
  }
  return kUnknown;
}

const char* Name(CodecKind kind) { return CodecRowOf(kind).name; }

absl::Status FromName(const std::string& name, CodecKind* to) {
  return FindNameIn("codec", name, kRows, to);
}

}  // namespace thinwire
