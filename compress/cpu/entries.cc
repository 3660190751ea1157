#include "compress/cpu/entries.h"

#include <algorithm>

#include "compress/bytes.h"
#include "compress/cpu/entries_header.h"
#include "compress/cpu/index_coding.h"
#include "compress/cpu/parallel.h"
#include "compress/cpu/set_bits.h"
#include "compress/cpu/sparse_writer.h"
#include "compress/cpu/values.h"
#include "compress/layout.h"
#include "compress/refusals.h"
#include "compress/scratch.h"

namespace thinwire {
namespace {

// Checks that a payload has no more entries in a scope than the codec keeps. Positions come in
// ascending order.
class ScopeGuard {
 public:
  ScopeGuard(const CodecSpec& spec, const Scopes& scopes)
      : scopes_(scopes),
        most_(MostEntriesOfScope(spec, scopes.elements)),
        most_of_last_(MostEntriesOfScope(spec, scopes.of_last())) {
    if (!scopes.strided) return;
    static thread_local Scratch<int64_t> memory;
    counts_ = memory.Get(scopes.count);
    std::fill(counts_, counts_ + scopes.count, 0);
  }
  // Counts more positions. Returns false if a scope has too many.
  bool Accept(const uint32_t* positions, size_t n) {
    if (scopes_.count == 1) return true;  // the count of the header was checked
    return scopes_.strided ? AcceptStrided(positions, n) : AcceptContiguous(positions, n);
  }

 private:
  bool AcceptStrided(const uint32_t* positions, size_t n) {
    bool accepted = true;
    for (size_t i = 0; i < n; ++i) {
      accepted &= ++counts_[positions[i] % static_cast<uint32_t>(scopes_.count)] <= most_;
    }
    return accepted;
  }
  bool AcceptContiguous(const uint32_t* positions, size_t n) {
    bool accepted = true;
    for (const uint32_t *next = positions, *const end = positions + n; next < end;) {
      if (*next >= scope_end_) {
        scope_end_ = (*next / scopes_.elements + 1) * scopes_.elements;
        scope_count_ = 0;
      }
      // The search for the scope's end needs to look no further: a scope has no more entries than
      // elements.
      const uint32_t* const furthest = next + std::min<int64_t>(end - next, scopes_.elements);
      const uint32_t* const next_scope = std::lower_bound(next, furthest, scope_end_);
      scope_count_ += next_scope - next;
      accepted &= scope_count_ <= (scope_end_ < scopes_.total ? most_ : most_of_last_);
      next = next_scope;
    }
    return accepted;
  }

  const Scopes& scopes_;
  int64_t most_, most_of_last_;
  int64_t* counts_ = nullptr;
  int64_t scope_end_ = 0;
  int64_t scope_count_ = 0;
};

// Replaces ascending positions of supported entries by their ranks: the numbers of supported
// entries before them. Both ends know the support, so ranks, which are smaller numbers, say where
// entries stood.
void ToRanks(const SupportView& support, uint32_t* positions, size_t n) {
  int64_t word = 0;
  uint32_t before = 0;  // set bits in the words before
  for (size_t i = 0; i < n; ++i) {
    const int64_t position = positions[i];
    for (; word < position / 64; ++word) before += __builtin_popcountll(support.words[word]);
    // One less than the position's bit has all lower bits set; the rank counts those of them that
    // have support.
    const uint64_t lower = (uint64_t{1} << (position % 64)) - 1;
    positions[i] = before + __builtin_popcountll(support.words[word] & lower);
  }
}

// Inverse of ToRanks, for ascending ranks.
class SupportedPositions {
 public:
  explicit SupportedPositions(const SupportView& support) {
    const auto* const bytes = reinterpret_cast<const uint8_t*>(support.words);
    bits_.Open(bytes, bytes + (support.elements + 63) / 64 * 8);
  }
  // Replaces ranks by positions. Ranks ascend, also from one call to the next, and are below
  // support.count.
  void FromRanks(uint32_t* ranks, size_t n) {
    for (size_t i = 0; i < n; ++i) {
      for (size_t listed = bits_.size(); ranks[i] - rank_ >= listed; listed = bits_.size()) {
        rank_ += listed;
        bits_.Skip(listed);
      }
      ranks[i] = static_cast<uint32_t>(bits_.first()) + bits_.offsets()[ranks[i] - rank_];
    }
  }

 private:
  SetBits bits_;
  uint32_t rank_ = 0;  // rank of the next bit
};

// Returns the bound of indices: they count all elements, or those with support.
int64_t NumIndices(int64_t total, const KernelContext& context) {
  return context.support == nullptr ? total : context.support->count;
}

// Reader of the positions of entries in the tensor, block by block.
class PositionReader {
 public:
  // Reads from `indices`, which is open. All arguments outlive the reader.
  PositionReader(IndexReader* indices, const CodecSpec& spec, const Scopes& scopes,
                 const SupportView* support)
      : indices_(indices),
        spec_(spec),
        guard_(spec, scopes),
        most_(MostEntriesOfScope(spec, scopes.elements)),
        has_support_(support != nullptr),
        supported_(has_support_ ? *support : SupportView()) {}

  Error Read(size_t n, uint32_t* positions) {
    RETURN_ERROR(indices_->Read(n, positions));
    if (has_support_) supported_.FromRanks(positions, n);
    if (guard_.Accept(positions, n)) return Error{};
    return MakeError(kRefused, "%s: more than %lld entries in one %s", Name(spec_.kind),
                     static_cast<long long>(most_), Name(spec_.scope));
  }

 private:
  IndexReader* indices_;
  const CodecSpec& spec_;
  ScopeGuard guard_;
  int64_t most_;
  bool has_support_;
  SupportedPositions supported_;
};

// Decodes entries in one pass over the payload. `values` is open, for `count` entries.
Error DecodeEntries(size_t count, PositionReader* positions, ValueReader* values,
                    const TensorView& x) {
  uint32_t block[kEntriesAtOnce];
  float floats[kEntriesAtOnce];
  SparseWriter writer(x, 0, x.elements());
  for (size_t done = 0; done < count;) {
    const size_t n = std::min(kEntriesAtOnce, count - done);
    RETURN_ERROR(positions->Read(n, block));
    RETURN_ERROR(values->Read(n, floats));
    writer.Write(block, floats, n);
    done += n;
  }
  writer.Finish();
  return Error{};
}

// Decodes entries by several threads. One thread reads all positions first, because each depends on
// those before.
Error DecodeEntriesByParts(size_t count, PositionReader* positions, const ValueReader& values,
                           int threads, const TensorView& x) {
  static thread_local Scratch<uint32_t> memory;
  uint32_t* const all = memory.Get(count);
  for (size_t done = 0; done < count; done += kEntriesAtOnce) {
    RETURN_ERROR(positions->Read(std::min(kEntriesAtOnce, count - done), all + done));
  }
  return WriteSparse(all, count, values, threads, x);
}

}  // namespace

Error WriteEntries(Kept* kept, int64_t total, const CodecSpec& spec, const KernelContext& context,
                   const PayloadBuffer& payload, int threads) {
  if (context.support != nullptr) ToRanks(*context.support, kept->positions, kept->count);
  const int64_t num_indices = NumIndices(total, context);
  const IndexPlan plan = PlanIndices(kept->positions, kept->count, num_indices, threads);
  const size_t value_bytes = ValueBytes(spec, kept->count);
  *payload.bytes = kEntriesHeaderBytes + value_bytes + plan.bytes;
  RETURN_ERROR(CheckCapacity(Name(spec.kind), payload.capacity, *payload.bytes));
  const EntriesHeader header = {
      static_cast<uint8_t>(plan.coding), static_cast<uint8_t>(plan.rice_bits),
      ValueExponent(kept->values, kept->count, spec, threads), static_cast<uint32_t>(kept->count)};
  StoreAs(header, payload.data);
  uint8_t* const values = payload.data + kEntriesHeaderBytes;
  WriteIndices(plan, kept->positions, kept->count, num_indices, threads, values + value_bytes);
  return WriteValues(kept->values, kept->count, spec, header.exponent, context.random_key, threads,
                     values);
}

Error CpuEntriesDecode(const PayloadView& payload, const CodecSpec& spec,
                       const KernelContext& context, const TensorView& x, int threads) {
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  RETURN_ERROR(CheckElements(spec, scopes.total));
  EntriesHeader header;
  RETURN_ERROR(ReadEntriesHeader(payload.data, payload.bytes, spec, scopes, &header));
  const uint8_t* from = payload.data + kEntriesHeaderBytes;
  const size_t value_bytes = ValueBytes(spec, header.count);
  const IndexPlan plan = {static_cast<IndexCoding>(header.coding), header.rice_bits,
                          payload.bytes - kEntriesHeaderBytes - value_bytes};
  IndexReader indices;
  RETURN_ERROR(
      indices.Open(plan, from + value_bytes, header.count, NumIndices(scopes.total, context)));
  ValueReader values;
  RETURN_ERROR(values.Open(from, header.count, spec, header.exponent, threads));
  PositionReader positions(&indices, spec, scopes, context.support);
  if (Parts(scopes.total, threads).count() == 1) {
    return DecodeEntries(header.count, &positions, &values, x);
  }
  return DecodeEntriesByParts(header.count, &positions, values, threads, x);
}

}  // namespace thinwire
