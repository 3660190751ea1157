// One row for each codec: what those who treat all codecs alike ask of one. Whatever differs by
// kind stands here or in the kernels of a backend.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compress/spec.h"
#include "tensor/tensor.h"

namespace thinwire {

// The field of a specification that is its level (level.h).
enum class LevelField : uint8_t { kNone, kRatio, kBits, kRate };

struct CodecRow {
  // Groups of parameters, as bits. compress/spec_parameters.h spells them out.
  enum Parameters : uint32_t {
    kIndices = 1u << 0,
    kStep = 1u << 1,       // rate, step
    kThreshold = 1u << 2,  // threshold, relative_to
    kGrid = 1u << 3,       // bits, range, zero
    kKept = 1u << 4,       // ratio, k, count
    kScope = 1u << 5,
    kGroup = 1u << 6,  // group of scope group
    kPad = 1u << 7,
    kUnbiased = 1u << 8,
    kRounding = 1u << 9,
    kReconstruction = 1u << 10,
    kHadamard = 1u << 11,   // rotation, rotation_block
    kPrincipal = 1u << 12,  // rotation, rotation_every
    kValues = 1u << 13,     // values, and what values uniform and means have
    kFormat = 1u << 14,
    kBlock = 1u << 15,
    kRank = 1u << 16,  // rank, per_sample
    kPlugin = 1u << 17,
    kSupport = 1u << 18,
    kOutliers = 1u << 19,  // outliers, first_position
  };

  CodecKind value;
  const char* name;
  const char* description;  // "the K entries of largest magnitude, and where they stood"

  uint32_t parameters = 0;  // of Parameters; `lossless` belongs to every codec
  Scope scope = Scope::kTensor;
  Lossless lossless = Lossless::kNone;
  // The rounding of gradients without feedback for which nobody names one.
  Rounding gradient_rounding = Rounding::kNearest;

  // CheckSpec of this kind. Null: any specification is valid.
  absl::Status (*check)(const CodecSpec& spec) = nullptr;
  // IsCausal of this kind. Null: it never is.
  bool (*is_causal)(const CodecSpec& spec, int64_t width) = nullptr;
  // CodecMaxPayloadBytes of this kind. Null: nobody but the plug-in knows.
  size_t (*max_payload_bytes)(const CodecSpec& spec, const Shape& shape, DType dtype) = nullptr;
  // Place in the payload of a tensor of this shape at which a code of one byte per element begins,
  // large and small ones side by side as values are (entropy/codes_place.h). Null: there are none.
  size_t (*codes_begin)(const CodecSpec& spec, const Shape& coded) = nullptr;
  // False if normal values do not tell whether feedback contracts. Null: they always do.
  bool (*shows_contraction)(const CodecSpec& spec) = nullptr;
  LevelField level = LevelField::kNone;

  // Positions are sent or derived by the codec itself, with a support those among its entries.
  bool has_positions = false;
  bool carries_nonfinite = false;  // NaN and infinity, or may
  bool is_lossless = false;        // loses nothing, unless there is a support
  bool is_plugin = false;          // a user's library encodes and decodes, not a backend's kernels

  bool has(Parameters group) const { return (parameters & group) != 0; }
};

// In the order in which errors and lists name codecs.
absl::Span<const CodecRow> CodecRows();

// The row of `kind`. The row of a number that is no codec's has the name "unknown" and refuses.
const CodecRow& CodecRowOf(CodecKind kind);

}  // namespace thinwire
