#include <algorithm>
#include <cmath>

#include "compress/bytes.h"
#include "compress/cpu/blocks.h"
#include "compress/cpu/codecs.h"
#include "compress/cpu/ecsq_header.h"
#include "compress/cpu/loops.h"
#include "compress/cpu/nonfinite.h"
#include "compress/cpu/parallel.h"
#include "compress/cpu/segments.h"
#include "compress/cpu/sum_of_squares.h"
#include "compress/cpu/whole_steps.h"
#include "compress/layout.h"
#include "compress/refusals.h"
#include "compress/scratch.h"

namespace thinwire {
namespace {

bool NeedsChance(const CodecSpec& spec) { return IsUnbiased(spec.rounding); }

// Offsets of the parts of a payload.
struct Places {
  Places(const CodecSpec& spec, const Scopes& scopes) {
    key = 2 * scopes.count;
    means = key + (spec.rounding == Rounding::kDither ? kDitherKeyBytes : 0);
    bytes = EcsqHeaderBytes(spec, scopes);
    escapes = bytes + scopes.total;
  }
  size_t key, means, bytes, escapes;
};

float StepAt(const uint8_t* payload, int64_t scope) {
  return FromBFloat(LoadAs<uint16_t>(payload + 2 * scope));
}

// Writes the step of each scope. Returns false if an element is not finite.
bool WriteSteps(const TensorView& x, const CodecSpec& spec, const Scopes& scopes, int threads,
                uint8_t* payload) {
  const bool splits_scopes = SplitsScopes(scopes, threads);
  const Parts parts(scopes.total, splits_scopes ? 1 : threads,
                    std::max<int64_t>(scopes.elements, 1));
  return 0 == LargestOfParts(parts, [&](int64_t first, int64_t last) {
           uint32_t is_bad = 0;
           for (int64_t begin = first; begin < last; begin += scopes.elements) {
             const int64_t n = std::min(scopes.elements, last - begin);
             const double sum = SumOfSquares(x, begin, n, splits_scopes ? threads : 1);
             if (!std::isfinite(sum)) is_bad = 1;
             StoreAs(StepBits(sum, n, spec.step), payload + 2 * (begin / scopes.elements));
           }
           return is_bad;
         });
}

// Result of one part of the tensor: its escapes, and what it adds to the means.
struct PartResult {
  CellSums sums;
  int32_t* escapes = nullptr;
  int64_t num_escapes = 0;
};

class Encoder {
 public:
  Encoder(const CodecSpec& spec, const Scopes& scopes, uint64_t random_key, uint8_t* payload)
      : spec_(spec), scopes_(scopes), random_key_(random_key), payload_(payload) {}

  // Encodes elements [begin, end).
  void Encode(const TensorView& x, int64_t begin, int64_t end, uint8_t* bytes,
              PartResult* result) const {
    alignas(64) uint32_t random[kBlock];
    alignas(64) int32_t codes[kBlock];
    ReadBlocks(x, begin, end, [&](int64_t i, size_t n, const float* values) {
      if (NeedsChance(spec_)) PhiloxNumbers(random_key_, i, n, random);
      ForEachSegment(i, n, scopes_.elements, [&](size_t at, size_t m, int64_t scope, int64_t) {
        const float step = StepAt(payload_, scope);
        uint8_t* const to = bytes + i + at;
        if (step == 0) {
          std::fill_n(to, m, 0);
          return;
        }
        const uint32_t largest = ToWholeSteps(values + at, m, step, spec_.rounding,
                                              NeedsChance(spec_) ? random + at : nullptr, codes, to,
                                              spec_.has_means() ? &result->sums : nullptr);
        if (largest < kEscape) return;
        for (size_t j = 0; j < m; ++j) {
          if (to[j] == kEscape) result->escapes[result->num_escapes++] = codes[j];
        }
      });
    });
  }

 private:
  const CodecSpec& spec_;
  const Scopes& scopes_;
  const uint64_t random_key_;
  const uint8_t* const payload_;  // begins with the steps
};

void WriteMeans(const PartResult* results, int parts, uint8_t* to) {
  for (int m = 0; m < kMeans; ++m) {
    int64_t count = 0, fractions = 0;
    for (int part = 0; part < parts; ++part) {
      count += results[part].sums.count[m];
      fractions += results[part].sums.fractions[m];
    }
    to[m] = static_cast<uint8_t>(MeanOf(fractions, count));
  }
}

// Writes the escapes of all parts and returns their bytes.
size_t WriteEscapes(const PartResult* results, int parts, uint8_t* to) {
  uint8_t* const begin = to;
  for (int part = 0; part < parts; ++part) {
    for (int64_t i = 0; i < results[part].num_escapes; ++i, to += 4) {
      StoreAs(results[part].escapes[i], to);
    }
  }
  return static_cast<size_t>(to - begin);
}

// Decoder of a payload: all that it says besides its bytes.
struct Decoder {
  const CodecSpec& spec;
  const Scopes& scopes;
  const uint8_t* payload;
  uint64_t key = 0;
  float means[kMeans] = {};

  // Decodes elements [begin, end), the first of whose escapes is at `escapes`.
  Error Decode(int64_t begin, int64_t end, const uint8_t* bytes, const uint8_t* escapes,
               const TensorView& x) const {
    alignas(64) uint32_t random[kBlock];
    const bool dithers = spec.rounding == Rounding::kDither;
    Error error;
    WriteBlocks(x, begin, end, [&](int64_t i, size_t n, float* to) {
      if (dithers) PhiloxNumbers(key, i, n, random);
      ForEachSegment(i, n, scopes.elements, [&](size_t at, size_t m, int64_t scope, int64_t) {
        const float step = StepAt(payload, scope);
        const uint8_t largest = FromWholeSteps(bytes + i + at, m, step, means,
                                               dithers ? random + at : nullptr, to + at);
        if (largest < kEscape) return;
        for (size_t j = at; j < at + m; ++j) {
          if (bytes[i + j] != kEscape) continue;
          const auto code = LoadAs<int32_t>(escapes);
          escapes += 4;
          if (ZigZag(code) < kEscape) {
            error = MakeError(
                kRefused,
                "ecsq: code %d of element %lld behind the bytes, want one that has no byte", code,
                static_cast<long long>(i + static_cast<int64_t>(j)));
          }
          to[j] = ValueOfSteps(static_cast<float>(code) - (dithers ? Dither(random[j]) : 0), step);
        }
      });
    });
    return error;
  }
};

Error CheckSteps(const Scopes& scopes, const uint8_t* payload) {
  for (int64_t scope = 0; scope < scopes.count; ++scope) {
    const auto bits = LoadAs<uint16_t>(payload + 2 * scope);
    if (IsStep(bits)) continue;
    return MakeError(kRefused, "ecsq: step of scope %lld is %g, want 0 or a normal number",
                     static_cast<long long>(scope), static_cast<double>(FromBFloat(bits)));
  }
  return Error{};
}

}  // namespace

Error CpuEcsqEncode(const CodecSpec& spec, const TensorView& x, const KernelContext& context,
                    const PayloadBuffer& payload, int threads) {
  static thread_local Scratch<int32_t> memory;
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  RETURN_ERROR(CheckCapacity("ecsq", payload.capacity, EcsqMaxPayloadBytes(spec, scopes)));
  const Places places(spec, scopes);
  if (!WriteSteps(x, spec, scopes, threads, payload.data)) return NonFiniteError("ecsq", x);
  if (spec.rounding == Rounding::kDither) StoreAs(context.random_key, payload.data + places.key);
  const Parts parts(scopes.total, threads);
  const int64_t most = MostEscapes(spec, scopes.total);
  int32_t* const escapes = memory.Get(most * parts.count());
  PartResult results[Parts::kMost];
  const Encoder encoder(spec, scopes, context.random_key, payload.data);
  ForEachPart(parts, [&](int part, int64_t begin, int64_t end) {
    results[part].escapes = escapes + part * most;
    encoder.Encode(x, begin, end, payload.data + places.bytes, &results[part]);
  });
  if (spec.has_means()) WriteMeans(results, parts.count(), payload.data + places.means);
  *payload.bytes =
      places.escapes + WriteEscapes(results, parts.count(), payload.data + places.escapes);
  return Error{};
}

Error CpuEcsqDecode(const PayloadView& payload, const CodecSpec& spec,
                    const KernelContext& /*context*/, const TensorView& x, int threads) {
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  const Places places(spec, scopes);
  if (payload.bytes < places.escapes) {
    return CheckPayloadBytes("ecsq", payload.bytes, places.escapes);
  }
  const uint8_t* const bytes = payload.data + places.bytes;
  const Parts parts(scopes.total, threads);
  int64_t num_escapes[Parts::kMost];
  ForEachPart(parts, [&](int part, int64_t begin, int64_t end) {
    num_escapes[part] = CountEscapes(bytes + begin, end - begin);
  });
  int64_t first_escape[Parts::kMost + 1] = {};
  for (int part = 0; part < parts.count(); ++part) {
    first_escape[part + 1] = first_escape[part] + num_escapes[part];
  }
  RETURN_ERROR(
      CheckPayloadBytes("ecsq", payload.bytes, places.escapes + 4 * first_escape[parts.count()]));
  RETURN_ERROR(CheckSteps(scopes, payload.data));
  Decoder decoder{spec, scopes, payload.data};
  if (spec.rounding == Rounding::kDither) {
    decoder.key = LoadAs<uint64_t>(payload.data + places.key);
  }
  for (int m = 0; m < kMeans && spec.has_means(); ++m) {
    decoder.means[m] = LoadAs<int8_t>(payload.data + places.means + m) * kMeanUnit;
  }
  return TryEachPart(parts, [&](int part, int64_t begin, int64_t end) {
    return decoder.Decode(begin, end, bytes, payload.data + places.escapes + 4 * first_escape[part],
                          x);
  });
}

}  // namespace thinwire
