#include "compress/cpu/index_coding.h"

#include <algorithm>
#include <cstring>

#include "compress/cpu/bytes.h"

namespace thinwire {
namespace {

constexpr size_t kReadBlock = 256;

size_t BytesOfBits(uint64_t bits) { return static_cast<size_t>((bits + 7) / 8); }

uint32_t FloorLog2(uint64_t x) { return 63 - static_cast<uint32_t>(__builtin_clzll(x)); }

// Fields of one width, the lowest bit of a byte first.
class FieldWriter {
 public:
  explicit FieldWriter(uint8_t* to) : to_(to) {}
  // Requires value < 2^width and width <= 32.
  void Add(uint64_t value, uint32_t width) {
    word_ |= value << filled_;
    filled_ += width;
    if (filled_ >= 32) {
      StoreAs(static_cast<uint32_t>(word_), to_);
      to_ += 4;
      word_ >>= 32;
      filled_ -= 32;
    }
  }
  uint8_t* Finish() {
    const size_t bytes = BytesOfBits(filled_);
    std::memcpy(to_, &word_, bytes);
    return to_ + bytes;
  }

 private:
  uint8_t* to_;
  uint64_t word_ = 0;
  uint32_t filled_ = 0;
};

// Sets bits of ascending numbers in `bytes` bytes of zeros.
class FlagWriter {
 public:
  FlagWriter(uint8_t* to, size_t bytes) : to_(to), bytes_(bytes) { std::memset(to, 0, bytes); }
  void Set(uint64_t bit) {
    if (bit / 64 != index_) {
      Finish();
      index_ = bit / 64;
      word_ = 0;
    }
    word_ |= uint64_t{1} << (bit % 64);
  }
  void Finish() {
    if (word_ != 0) std::memcpy(to_ + 8 * index_, &word_, std::min(bytes_ - 8 * index_, size_t{8}));
  }

 private:
  uint8_t* to_;
  size_t bytes_;
  size_t index_ = 0;
  uint64_t word_ = 0;
};

// Calls visit(gap): how many positions lie between one and the one before.
template <typename Visit>
void ForEachGap(const uint32_t* positions, size_t count, Visit visit) {
  uint32_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    visit(positions[i] - next);
    next = positions[i] + 1;
  }
}

IndexPlan PlanRice(const uint32_t* positions, size_t count, int64_t n) {
  constexpr uint32_t kCandidates = 5;
  const uint32_t most = std::min(FloorLog2(n / count) + 1, kMaxRiceBits);
  const uint32_t least = most >= kCandidates - 1 ? most - (kCandidates - 1) : 0;
  uint64_t quotients[kCandidates] = {};
  ForEachGap(positions, count, [&](uint32_t gap) {
    gap >>= least;
    for (uint32_t j = 0; j < kCandidates; ++j) quotients[j] += gap >> j;
  });
  IndexPlan best;
  for (uint32_t k = least; k <= most; ++k) {
    const size_t bytes =
        BytesOfBits(uint64_t{k} * count) + BytesOfBits(quotients[k - least] + count);
    if (k == least || bytes < best.bytes) best = {IndexCoding::kRice, k, bytes};
  }
  return best;
}

void WriteRice(const IndexPlan& plan, const uint32_t* positions, size_t count, uint8_t* bytes) {
  const uint32_t mask = (1u << plan.rice_bits) - 1;
  const size_t remainder_bytes = BytesOfBits(uint64_t{plan.rice_bits} * count);
  FieldWriter remainders(bytes);
  FlagWriter flags(bytes + remainder_bytes, plan.bytes - remainder_bytes);
  uint64_t bit = 0;
  ForEachGap(positions, count, [&](uint32_t gap) {
    remainders.Add(gap & mask, plan.rice_bits);
    bit += gap >> plan.rice_bits;
    flags.Set(bit++);
  });
  remainders.Finish();
  flags.Finish();
}

uint64_t CountSetBits(const uint8_t* from, const uint8_t* end) {
  uint64_t count = 0;
  for (; from < end; from += 8) count += __builtin_popcountll(LoadUpTo8(from, end));
  return count;
}

bool UnusedBitsAreZero(const uint8_t* bytes, uint64_t bits) {
  return bits % 8 == 0 || (bytes[bits / 8] >> (bits % 8)) == 0;
}

Error Malformed(const char* what, uint64_t met, uint64_t wanted) {
  return MakeError(absl::StatusCode::kInvalidArgument, "topk: %s %llu, want %llu", what,
                   static_cast<unsigned long long>(met), static_cast<unsigned long long>(wanted));
}

}  // namespace

IndexPlan PlanIndices(const uint32_t* positions, size_t count, int64_t n) {
  const IndexPlan bitmap = {IndexCoding::kBitmap, 0, BytesOfBits(n)};
  const IndexPlan packed = {IndexCoding::kPacked, 0,
                            BytesOfBits(uint64_t{PackedIndexBits(n)} * count)};
  IndexPlan best = packed.bytes < bitmap.bytes ? packed : bitmap;
  if (count > 0) {
    const IndexPlan rice = PlanRice(positions, count, n);
    if (rice.bytes < best.bytes) best = rice;
  }
  return best;
}

void WriteIndices(const IndexPlan& plan, const uint32_t* positions, size_t count, int64_t n,
                  uint8_t* bytes) {
  switch (plan.coding) {
    case IndexCoding::kBitmap: {
      FlagWriter flags(bytes, plan.bytes);
      for (size_t i = 0; i < count; ++i) flags.Set(positions[i]);
      flags.Finish();
      return;
    }
    case IndexCoding::kPacked: {
      const uint32_t width = PackedIndexBits(n);
      FieldWriter fields(bytes);
      for (size_t i = 0; i < count; ++i) fields.Add(positions[i], width);
      fields.Finish();
      return;
    }
    case IndexCoding::kRice:
      WriteRice(plan, positions, count, bytes);
      return;
  }
}

Error IndexReader::Open(const IndexPlan& plan, const uint8_t* bytes, size_t count, int64_t n) {
  *this = IndexReader();
  plan_ = plan;
  n_ = n;
  packed_bits_ = PackedIndexBits(n);
  fields_ = flags_ = bytes;
  end_ = bytes + plan.bytes;
  if (plan.coding == IndexCoding::kPacked) {
    const uint64_t bits = uint64_t{packed_bits_} * count;
    if (plan.bytes != BytesOfBits(bits)) {
      return Malformed("packed index bytes", plan.bytes, BytesOfBits(bits));
    }
    if (!UnusedBitsAreZero(bytes, bits)) return Malformed("unused bits of indices", 1, 0);
    return Error{};
  }
  if (plan.coding == IndexCoding::kBitmap) {
    if (plan.bytes != BytesOfBits(n)) {
      return Malformed("bitmap bytes", plan.bytes, BytesOfBits(n));
    }
    if (!UnusedBitsAreZero(bytes, n)) return Malformed("unused bits of the bitmap", 1, 0);
  } else {
    const uint64_t bits = uint64_t{plan.rice_bits} * count;
    if (plan.bytes < BytesOfBits(bits)) {
      return Malformed("remainder bytes", plan.bytes, BytesOfBits(bits));
    }
    flags_ = bytes + BytesOfBits(bits);
    if (!UnusedBitsAreZero(bytes, bits)) return Malformed("unused bits of remainders", 1, 0);
    // Longer flags could only spell positions beyond n; shorter ones keep every sum in 64 bits.
    const uint64_t most = BytesOfBits((static_cast<uint64_t>(n) >> plan.rice_bits) + count);
    if (static_cast<uint64_t>(end_ - flags_) > most) {
      return Malformed("quotient bytes", end_ - flags_, most);
    }
    if (flags_ < end_ && end_[-1] == 0) return Malformed("last quotient byte", 0, 1);
  }
  const uint64_t set = CountSetBits(flags_, end_);
  if (set != count) return Malformed("set bits", set, count);
  word_ = LoadUpTo8(flags_, end_);
  return Error{};
}

Error IndexReader::Read(size_t num, uint32_t* positions) {
  uint64_t wide[kReadBlock];
  for (size_t done = 0; done < num;) {
    const size_t now = std::min(kReadBlock, num - done);
    switch (plan_.coding) {
      case IndexCoding::kBitmap:
        ReadBitmap(now, wide);
        break;
      case IndexCoding::kPacked:
        ReadPacked(now, wide);
        break;
      case IndexCoding::kRice:
        ReadRice(now, wide);
        break;
    }
    for (size_t i = 0; i < now; ++i) {
      if (wide[i] < least_ || wide[i] >= static_cast<uint64_t>(n_)) {
        return MakeError(absl::StatusCode::kInvalidArgument,
                         "topk: index %llu is out of order or outside %lld elements",
                         static_cast<unsigned long long>(wide[i]), static_cast<long long>(n_));
      }
      least_ = wide[i] + 1;
      positions[done + i] = static_cast<uint32_t>(wide[i]);
    }
    done += now;
  }
  return Error{};
}

uint64_t IndexReader::NextSetBit() {
  while (word_ == 0) {
    word_bit_ += 64;
    word_ = LoadUpTo8(flags_ + word_bit_ / 8, end_);
  }
  const uint64_t bit = word_bit_ + static_cast<uint64_t>(__builtin_ctzll(word_));
  word_ &= word_ - 1;
  return bit;
}

uint64_t IndexReader::Field(uint64_t index, uint32_t width) const {
  const uint64_t bit = index * width;
  return (LoadUpTo8(fields_ + bit / 8, end_) >> (bit % 8)) & ((uint64_t{1} << width) - 1);
}

void IndexReader::ReadBitmap(size_t num, uint64_t* positions) {
  for (size_t i = 0; i < num; ++i) positions[i] = NextSetBit();
}

void IndexReader::ReadPacked(size_t num, uint64_t* positions) {
  for (size_t i = 0; i < num; ++i) positions[i] = Field(num_read_++, packed_bits_);
}

// The i-th flag stands behind i others and the sum of the quotients up to the i-th gap.
void IndexReader::ReadRice(size_t num, uint64_t* positions) {
  for (size_t i = 0; i < num; ++i) {
    const uint64_t quotients = NextSetBit() - num_read_;
    remainders_ += Field(num_read_, plan_.rice_bits);
    positions[i] = (quotients << plan_.rice_bits) + remainders_ + num_read_;
    ++num_read_;
  }
}

}  // namespace thinwire
