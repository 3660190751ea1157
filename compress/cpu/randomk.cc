#include <algorithm>

#include "compress/bytes.h"
#include "compress/cpu/blocks.h"
#include "compress/cpu/codecs.h"
#include "compress/cpu/entries_header.h"
#include "compress/cpu/kept.h"
#include "compress/cpu/loops.h"
#include "compress/cpu/nonfinite.h"
#include "compress/cpu/operations.h"
#include "compress/cpu/parallel.h"
#include "compress/cpu/scan.h"
#include "compress/cpu/segments.h"
#include "compress/cpu/sparse_writer.h"
#include "compress/cpu/values.h"
#include "compress/half.h"
#include "compress/layout.h"
#include "compress/refusals.h"
#include "compress/scratch.h"

namespace thinwire {
namespace {

// Returns the kept entries. The draw of an element is the upper 30 bits of its number in the seed's
// stream, plus one, as the bits of a small fp32. So topk's choice finds the K highest of each
// scope. Without support the draw is zero, which is never kept.
Kept Draw(const Scopes& scopes, const CodecSpec& spec, uint64_t seed, const SupportView* support,
          int threads) {
  static thread_local Scratch<float> memory;
  float* draws = memory.Get(scopes.total);
  ForEachPart(Parts(scopes.total, threads), [&](int, int64_t begin, int64_t end) {
    alignas(64) uint32_t random[kBlock];
    ForEachBlock(begin, end, [&](int64_t first, size_t n) {
      PhiloxNumbers(seed, first, n, random);
      for (size_t i = 0; i < n; ++i) draws[first + i] = FloatOf((random[i] >> 2) + 1);
    });
  });
  if (support != nullptr) KeepSupported(*support, threads, draws);
  return KeepLargest(draws, scopes, spec, threads);
}

// Counts the supported elements of every scope, in this thread's memory.
const int64_t* CountSupported(const Scopes& scopes, const SupportView& support) {
  static thread_local Scratch<int64_t> memory;
  int64_t* counts = memory.Get(scopes.count);
  std::fill(counts, counts + scopes.count, 0);
  for (int64_t word = 0; 64 * word < support.elements; ++word) {
    // `bits &= bits - 1` clears the lowest set bit, whose number is the count of zeros below it.
    for (uint64_t bits = support.words[word]; bits != 0; bits &= bits - 1) {
      ++counts[ScopeAt(scopes, 64 * word + __builtin_ctzll(bits))];
    }
  }
  return counts;
}

// Multiplies kept values by the number that could have been kept over the number kept: the mean
// over all seeds is then the tensor.
void Rescale(const Scopes& scopes, const CodecSpec& spec, const SupportView* support, Kept* kept) {
  const int64_t most = NumKept(spec, scopes.elements);
  const auto factor = [&](int64_t n) {
    return static_cast<float>(static_cast<double>(n) / static_cast<double>(std::min(most, n)));
  };
  if (support == nullptr) {
    const float times = factor(scopes.elements);
    for (size_t i = 0; i < kept->count; ++i) kept->values[i] *= times;
    return;
  }
  const int64_t* counts = CountSupported(scopes, *support);
  for (size_t i = 0; i < kept->count; ++i) {
    kept->values[i] *= factor(counts[ScopeAt(scopes, kept->positions[i])]);
  }
}

}  // namespace

Error CpuRandomKEncode(const CodecSpec& spec, const TensorView& x, const KernelContext& context,
                       const PayloadBuffer& payload, int threads) {
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  RETURN_ERROR(CheckElements(spec, scopes.total));
  const float* values = SupportedFloats(x, context.support, threads);
  if (LargestMagnitude(values, scopes.total, threads) >= kInfinityBits) {
    return NonFiniteError(Name(spec.kind), x, context.support);
  }
  Kept kept = Draw(scopes, spec, context.random_key, context.support, threads);
  *payload.bytes = RandomKHeaderBytes(spec) + ValueBytes(spec, kept.count);
  RETURN_ERROR(CheckCapacity(Name(spec.kind), payload.capacity, *payload.bytes));
  ForEachPart(Parts(kept.count, threads), [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) kept.values[i] = values[kept.positions[i]];
  });
  if (spec.unbiased) Rescale(scopes, spec, context.support, &kept);
  if (LargestMagnitude(kept.values, kept.count, threads) >= kInfinityBits) {
    return OverflowOfProduct();
  }
  StoreAs(context.random_key, payload.data);
  const int16_t exponent = ValueExponent(kept.values, kept.count, spec, threads);
  if (spec.values == Values::kF16) StoreAs(exponent, payload.data + kSeedBytes);
  // The seed's own numbers decide who is kept, so rounding needs others.
  return WriteValues(kept.values, kept.count, spec, exponent, ~context.random_key, threads,
                     payload.data + RandomKHeaderBytes(spec));
}

Error CpuRandomKDecode(const PayloadView& payload, const CodecSpec& spec,
                       const KernelContext& context, const TensorView& x, int threads) {
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  RETURN_ERROR(CheckElements(spec, scopes.total));
  const size_t header_bytes = RandomKHeaderBytes(spec);
  RETURN_ERROR(CheckHeaderBytes(spec, payload.bytes, header_bytes));
  const Kept kept = Draw(scopes, spec, LoadAs<uint64_t>(payload.data), context.support, threads);
  RETURN_ERROR(CheckPayloadBytes(Name(spec.kind), payload.bytes,
                                 header_bytes + ValueBytes(spec, kept.count)));
  const int exponent =
      spec.values == Values::kF16 ? LoadAs<int16_t>(payload.data + kSeedBytes) : int16_t{0};
  ValueReader values;
  RETURN_ERROR(values.Open(payload.data + header_bytes, kept.count, spec, exponent, threads));
  return WriteSparse(kept.positions, kept.count, values, threads, x);
}

}  // namespace thinwire
