#include "compress/cpu/topk.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compress/cpu/blocks.h"
#include "compress/cpu/bytes.h"
#include "compress/cpu/convert.h"
#include "compress/cpu/half.h"
#include "compress/cpu/index_coding.h"
#include "compress/cpu/kept.h"
#include "compress/cpu/nonfinite.h"
#include "compress/cpu/scan.h"
#include "compress/cpu/scratch.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

// The first kTopKHeaderBytes bytes of a payload.
struct Header {
  uint8_t coding;
  uint8_t rice_bits;
  int16_t exponent;  // values were multiplied by 2^exponent; 0 unless they are fp16
  uint32_t count;
};
static_assert(sizeof(Header) == kTopKHeaderBytes, "as in docs/compression.md");

const float* AllFloats(const TensorView& x) {
  static thread_local Scratch<float> memory;
  const int64_t n = x.elements();
  return ReadFloats(x, 0, n, x.dtype == DType::kF32 ? nullptr : memory.Get(n));
}

void WriteValues(float* values, size_t n, Values type, int exponent, uint8_t* out) {
  switch (type) {
    case Values::kF32:
      std::memcpy(out, values, 4 * n);
      return;
    case Values::kF16:
      NarrowToHalf(values, n, PowerOfTwo(exponent), out);
      return;
    case Values::kBF16:
      // Only finite values are decoded: what would round to infinity stays the largest bf16.
      for (size_t i = 0; i < n; ++i) values[i] = std::clamp(values[i], -kMaxBFloat, kMaxBFloat);
      NarrowToBFloat(values, n, out);
      return;
    case Values::kUniform:
      return;
  }
}

void ReadValues(const uint8_t* from, size_t n, Values type, int exponent, float* values) {
  switch (type) {
    case Values::kF32:
      CopyFloats(from, n, values);
      return;
    case Values::kF16:
      WidenHalf(from, n, PowerOfTwo(-exponent), values);
      return;
    case Values::kBF16:
      WidenBFloat(from, n, values);
      return;
    case Values::kUniform:
      return;
  }
}

// Elements of a decoded tensor in ascending order, zeros between them.
class SparseWriter {
 public:
  explicit SparseWriter(const TensorView& x)
      : data_(static_cast<uint8_t*>(x.data)), size_(SizeOf(x.dtype)), total_(x.elements()) {}

  void Write(const uint32_t* positions, const float* values, size_t n) {
    ZeroUpTo(static_cast<int64_t>(positions[n - 1]) + 1);
    uint8_t* const data = data_;  // a local: the stores below may not alias it
    if (size_ == 4) {
      for (size_t i = 0; i < n; ++i) StoreAs(values[i], data + 4 * uint64_t{positions[i]});
    } else {
      for (size_t i = 0; i < n; ++i) {
        StoreAs(ToBFloat(values[i]), data + 2 * uint64_t{positions[i]});
      }
    }
  }
  void Finish() { ZeroUpTo(total_); }

 private:
  void ZeroUpTo(int64_t end) {
    if (end > written_) std::memset(data_ + written_ * size_, 0, (end - written_) * size_);
    written_ = end;
  }

  uint8_t* data_;
  int64_t size_;
  int64_t total_;
  int64_t written_ = 0;
};

// Holds a payload to at most K entries per scope. Positions come in ascending order.
class ScopeGuard {
 public:
  ScopeGuard(const Scopes& scopes, int64_t most) : scopes_(scopes), most_(most) {
    if (!scopes.strided) return;
    static thread_local Scratch<int64_t> memory;
    counts_ = memory.Get(scopes.count);
    std::fill(counts_, counts_ + scopes.count, 0);
  }
  // False if a scope has too many.
  bool Accept(const uint32_t* positions, size_t n) {
    if (scopes_.count == 1) return true;  // the count of the header was checked
    bool accepted = true;
    for (size_t i = 0; i < n; ++i) {
      accepted &= scopes_.strided
                      ? ++counts_[positions[i] % static_cast<uint32_t>(scopes_.count)] <= most_
                      : CountInRun(positions[i]) <= most_;
    }
    return accepted;
  }

 private:
  int64_t CountInRun(int64_t position) {
    if (position >= run_end_) {
      run_end_ = (position / scopes_.elements + 1) * scopes_.elements;
      run_count_ = 0;
    }
    return ++run_count_;
  }

  const Scopes& scopes_;
  int64_t most_;
  int64_t* counts_ = nullptr;
  int64_t run_end_ = 0;
  int64_t run_count_ = 0;
};

Error CheckHeader(const Header& h, size_t bytes, const CodecSpec& spec, const Scopes& scopes) {
  const uint64_t most = NumKept(spec, scopes.elements) * scopes.count;
  const bool exact = spec.pad == Pad::kExactK;
  if (h.count > most || (exact && h.count != most)) {
    return MakeError(absl::StatusCode::kInvalidArgument, "topk: %u entries, want %s%llu", h.count,
                     exact ? "" : "at most ", static_cast<unsigned long long>(most));
  }
  if (bytes < kTopKHeaderBytes + uint64_t{h.count} * BytesPerValue(spec.values)) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "topk: payload of %zu bytes, want room for %u values", bytes, h.count);
  }
  if (h.coding > static_cast<uint8_t>(IndexCoding::kRice)) {
    return MakeError(absl::StatusCode::kInvalidArgument, "topk: index coding %d, want 0 to 2",
                     h.coding);
  }
  const bool is_rice = h.coding == static_cast<uint8_t>(IndexCoding::kRice);
  if (h.rice_bits > (is_rice ? kMaxRiceBits : 0)) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "topk: %d remainder bits with index coding %d", h.rice_bits, h.coding);
  }
  const bool is_half = spec.values == Values::kF16;
  if (h.exponent < (is_half ? kLeastPreScale : 0) || h.exponent > (is_half ? kMostPreScale : 0)) {
    return MakeError(absl::StatusCode::kInvalidArgument, "topk: pre-scale exponent %d of %s values",
                     h.exponent, Name(spec.values));
  }
  return Error{};
}

Error DecodeEntries(const Header& h, IndexReader* indices, const uint8_t* values,
                    const CodecSpec& spec, const Scopes& scopes, const TensorView& x) {
  constexpr size_t kEntries = 512;  // and the zeros around them stay in the cache
  uint32_t positions[kEntries];
  float floats[kEntries];
  const int64_t most = NumKept(spec, scopes.elements);
  ScopeGuard guard(scopes, most);
  SparseWriter writer(x);
  for (size_t done = 0; done < h.count;) {
    const size_t n = std::min<size_t>(kEntries, h.count - done);
    const Error error = indices->Read(n, positions);
    if (!error.ok()) return error;
    if (!guard.Accept(positions, n)) {
      return MakeError(absl::StatusCode::kInvalidArgument, "topk: more than %lld entries in one %s",
                       static_cast<long long>(most), Name(spec.scope));
    }
    ReadValues(values + done * BytesPerValue(spec.values), n, spec.values, h.exponent, floats);
    if (LargestMagnitude(floats, n) >= kInfinityBits) {
      return MakeError(absl::StatusCode::kInvalidArgument,
                       "topk: a value is NaN or infinite, want finite values");
    }
    writer.Write(positions, floats, n);
    done += n;
  }
  writer.Finish();
  return Error{};
}

}  // namespace

Error CpuTopKEncode(const TensorView& x, const CodecSpec& spec, uint8_t* payload, size_t capacity,
                    size_t* bytes) {
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  if (scopes.total > kTopKMaxElements) {
    return MakeError(absl::StatusCode::kInvalidArgument, "topk: %lld elements, want at most %lld",
                     static_cast<long long>(scopes.total),
                     static_cast<long long>(kTopKMaxElements));
  }
  const Kept kept = KeepLargest(AllFloats(x), scopes, spec);
  if (!kept.finite) return NonFiniteError("topk", x);
  const IndexPlan plan = PlanIndices(kept.positions, kept.count, scopes.total);
  const size_t value_bytes = kept.count * BytesPerValue(spec.values);
  *bytes = kTopKHeaderBytes + value_bytes + plan.bytes;
  if (capacity < *bytes) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "topk: payload memory of %zu bytes, want %zu", capacity, *bytes);
  }
  Header header = {static_cast<uint8_t>(plan.coding), static_cast<uint8_t>(plan.rice_bits), 0,
                   static_cast<uint32_t>(kept.count)};
  if (spec.values == Values::kF16) {
    header.exponent = PreScaleFor(FloatOf(LargestMagnitude(kept.values, kept.count)));
  }
  StoreAs(header, payload);
  WriteValues(kept.values, kept.count, spec.values, header.exponent, payload + kTopKHeaderBytes);
  WriteIndices(plan, kept.positions, kept.count, scopes.total,
               payload + kTopKHeaderBytes + value_bytes);
  return Error{};
}

Error CpuTopKDecode(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                    const TensorView& x) {
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  if (bytes < kTopKHeaderBytes || scopes.total > kTopKMaxElements) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "topk: payload of %zu bytes for %lld elements, want at least %zu for at most "
                     "%lld",
                     bytes, static_cast<long long>(scopes.total), kTopKHeaderBytes,
                     static_cast<long long>(kTopKMaxElements));
  }
  const Header header = LoadAs<Header>(payload);
  Error error = CheckHeader(header, bytes, spec, scopes);
  if (!error.ok()) return error;
  const uint8_t* values = payload + kTopKHeaderBytes;
  const size_t value_bytes = header.count * BytesPerValue(spec.values);
  const IndexPlan plan = {static_cast<IndexCoding>(header.coding), header.rice_bits,
                          bytes - kTopKHeaderBytes - value_bytes};
  IndexReader indices;
  error = indices.Open(plan, values + value_bytes, header.count, scopes.total);
  if (!error.ok()) return error;
  return DecodeEntries(header, &indices, values, spec, scopes, x);
}

}  // namespace thinwire
