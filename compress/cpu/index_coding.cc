#include "compress/cpu/index_coding.h"

#include <algorithm>
#include <cstring>

#include "compress/bytes.h"
#include "compress/cpu/loops.h"
#include "compress/cpu/parallel.h"
#include "compress/refusals.h"

namespace thinwire {
namespace {

size_t BytesOfBits(uint64_t bits) { return static_cast<size_t>((bits + 7) / 8); }

// Returns the number of the highest set bit: 63 less the zeros above it. Requires x > 0.
uint32_t FloorLog2(uint64_t x) { return 63 - static_cast<uint32_t>(__builtin_clzll(x)); }

// Writer of fields, the lowest bit of a byte first.
class FieldWriter {
 public:
  explicit FieldWriter(uint8_t* to) : to_(to) {}
  // Appends a field. Requires value < 2^width and width <= 32.
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

// Writer that sets bits of ascending numbers in `bytes` bytes of zeros.
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

// Calls visit(gap) for each position, where gap is the number of positions between it and the one
// before.
template <typename Visit>
void ForEachGap(const uint32_t* positions, size_t count, Visit visit) {
  uint32_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    visit(positions[i] - next);
    next = positions[i] + 1;
  }
}

// Sums of the gaps' quotients with `least` remainder bits and with up to four more.
constexpr uint32_t kRiceCandidates = 5;
struct Quotients {
  uint32_t sums[kRiceCandidates] = {};  // gaps sum up to less than 2^32, and so does each of these
};

// Returns the sums over the gaps before entries [begin, end).
Quotients QuotientsOf(const uint32_t* positions, int64_t begin, int64_t end, uint32_t least) {
  Quotients q;
  for (int64_t i = begin; i < end; ++i) {
    const uint32_t next = i == 0 ? 0 : positions[i - 1] + 1;
    const uint32_t gap = (positions[i] - next) >> least;
    for (uint32_t j = 0; j < kRiceCandidates; ++j) q.sums[j] += gap >> j;
  }
  return q;
}

IndexPlan PlanRice(const uint32_t* positions, size_t count, int64_t n, int threads) {
  const uint32_t most = std::min(FloorLog2(n / count) + 1, kMaxRiceBits);
  const uint32_t least = most >= kRiceCandidates - 1 ? most - (kRiceCandidates - 1) : 0;
  const Parts parts(count, threads);
  Quotients quotients[Parts::kMost];
  ForEachPart(parts, [&](int part, int64_t begin, int64_t end) {
    quotients[part] = QuotientsOf(positions, begin, end, least);
  });
  IndexPlan best;
  for (uint32_t k = least; k <= most; ++k) {
    uint64_t sum = 0;
    for (int part = 0; part < parts.count(); ++part) sum += quotients[part].sums[k - least];
    const size_t bytes = BytesOfBits(uint64_t{k} * count) + BytesOfBits(sum + count);
    if (k == least || bytes < best.bytes) best = {IndexCoding::kRice, k, bytes};
  }
  return best;
}

// Parts of the bitmap begin at whole bytes, and so do parts of the entries below.
static_assert(kBlock % 8 == 0, "eight flags or fields fill whole bytes");

void WriteBitmap(const uint32_t* positions, size_t count, int64_t n, int threads, uint8_t* bytes) {
  ForEachPart(Parts(n, threads), [&](int, int64_t begin, int64_t end) {
    const uint32_t* const last = positions + count;
    const uint32_t* next = std::lower_bound(positions, last, begin);
    FlagWriter flags(bytes + begin / 8, BytesOfBits(end - begin));
    for (; next < last && *next < end; ++next) flags.Set(*next - begin);
    flags.Finish();
  });
}

void WritePacked(const uint32_t* positions, size_t count, uint32_t width, int threads,
                 uint8_t* bytes) {
  ForEachPart(Parts(count, threads), [&](int, int64_t begin, int64_t end) {
    FieldWriter fields(bytes + begin / 8 * width);
    for (int64_t i = begin; i < end; ++i) fields.Add(positions[i], width);
    fields.Finish();
  });
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

bool UnusedBitsAreZero(absl::FunctionRef<uint8_t(size_t)> byte_at, uint64_t bits) {
  return bits % 8 == 0 || (byte_at(bits / 8) >> (bits % 8)) == 0;
}

Error Malformed(const char* what, uint64_t met, uint64_t wanted) {
  return MakeError(kRefused, "indices: %s %llu, want %llu", what,
                   static_cast<unsigned long long>(met), static_cast<unsigned long long>(wanted));
}

}  // namespace

IndexPlan PlanIndices(const uint32_t* positions, size_t count, int64_t n, int threads) {
  const IndexPlan bitmap = {IndexCoding::kBitmap, 0, BytesOfBits(n)};
  const IndexPlan packed = {IndexCoding::kPacked, 0,
                            BytesOfBits(uint64_t{PackedIndexBits(n)} * count)};
  IndexPlan best = packed.bytes < bitmap.bytes ? packed : bitmap;
  if (count > 0) {
    const IndexPlan rice = PlanRice(positions, count, n, threads);
    if (rice.bytes < best.bytes) best = rice;
  }
  return best;
}

void WriteIndices(const IndexPlan& plan, const uint32_t* positions, size_t count, int64_t n,
                  int threads, uint8_t* bytes) {
  if (plan.bytes == 0) return;
  switch (plan.coding) {
    case IndexCoding::kBitmap:
      WriteBitmap(positions, count, n, threads, bytes);
      return;
    case IndexCoding::kPacked:
      WritePacked(positions, count, PackedIndexBits(n), threads, bytes);
      return;
    case IndexCoding::kRice:
      WriteRice(plan, positions, count, bytes);
      return;
  }
}

Error CheckIndexBytes(const IndexPlan& plan, absl::FunctionRef<uint8_t(size_t)> byte_at,
                      size_t count, int64_t n) {
  if (plan.coding == IndexCoding::kPacked) {
    const uint64_t bits = uint64_t{PackedIndexBits(n)} * count;
    if (plan.bytes != BytesOfBits(bits)) {
      return Malformed("packed index bytes", plan.bytes, BytesOfBits(bits));
    }
    if (!UnusedBitsAreZero(byte_at, bits)) return Malformed("unused bits of indices", 1, 0);
    return Error{};
  }
  if (plan.coding == IndexCoding::kBitmap) {
    if (plan.bytes != BytesOfBits(n)) {
      return Malformed("bitmap bytes", plan.bytes, BytesOfBits(n));
    }
    if (!UnusedBitsAreZero(byte_at, n)) return Malformed("unused bits of the bitmap", 1, 0);
    return Error{};
  }
  const uint64_t bits = uint64_t{plan.rice_bits} * count;
  if (plan.bytes < BytesOfBits(bits)) {
    return Malformed("remainder bytes", plan.bytes, BytesOfBits(bits));
  }
  if (!UnusedBitsAreZero(byte_at, bits)) return Malformed("unused bits of remainders", 1, 0);
  // Longer flags could only encode positions beyond n. This bound also keeps every sum in 64 bits.
  const size_t flag_bytes = plan.bytes - BytesOfBits(bits);
  const uint64_t most = BytesOfBits((static_cast<uint64_t>(n) >> plan.rice_bits) + count);
  if (flag_bytes > most) return Malformed("quotient bytes", flag_bytes, most);
  if (flag_bytes > 0 && byte_at(plan.bytes - 1) == 0) return Malformed("last quotient byte", 0, 1);
  return Error{};
}

Error IndexReader::Open(const IndexPlan& plan, const uint8_t* bytes, size_t count, int64_t n) {
  RETURN_ERROR(CheckIndexBytes(
      plan, [bytes](size_t at) { return bytes[at]; }, count, n));
  plan_ = plan;
  n_ = n;
  num_read_ = remainders_ = least_ = 0;
  fields_ = bytes;
  const uint8_t* const end = bytes + plan.bytes;
  fields_end_ = end;
  if (plan.coding == IndexCoding::kPacked) return Error{};
  const bool is_rice = plan.coding == IndexCoding::kRice;
  const uint8_t* flags = bytes + (is_rice ? BytesOfBits(uint64_t{plan.rice_bits} * count) : 0);
  const uint64_t set = CountSetBits(flags, end);
  if (set != count) return Malformed("set bits", set, count);
  bits_.Open(flags, end);
  fields_end_ = flags;
  return Error{};
}

Error IndexReader::Read(size_t num, uint32_t* positions) {
  if (num == 0) return Error{};
  // Positions from flags ascend by construction, so it suffices to check the last one.
  uint64_t last = 0;
  bool ascending = true;
  switch (plan_.coding) {
    case IndexCoding::kBitmap:
      last = ReadBitmap(num, positions);
      break;
    case IndexCoding::kPacked:
      last = ReadPacked(num, positions, &ascending);
      break;
    case IndexCoding::kRice:
      last = ReadRice(num, positions);
      break;
  }
  if (ascending && last < static_cast<uint64_t>(n_)) return Error{};
  return MakeError(kRefused, "indices: one up to %llu is out of order or outside %lld elements",
                   static_cast<unsigned long long>(last), static_cast<long long>(n_));
}

uint64_t IndexReader::ReadBitmap(size_t num, uint32_t* positions) {
  uint64_t last = 0;
  for (size_t done = 0; done < num;) {
    const size_t n = std::min(num - done, bits_.size());
    const uint32_t* const offsets = bits_.offsets();
    const uint32_t first = static_cast<uint32_t>(bits_.first());
    for (size_t i = 0; i < n; ++i) positions[done + i] = first + offsets[i];
    last = bits_.first() + offsets[n - 1];
    bits_.Skip(n);
    done += n;
  }
  return last;
}

uint64_t IndexReader::ReadPacked(size_t num, uint32_t* positions, bool* ascending) {
  uint64_t largest = 0;
  FieldReader fields(fields_, fields_end_, PackedIndexBits(n_), num_read_);
  num_read_ += num;
  for (size_t i = 0; i < num; ++i) {
    const uint64_t position = fields.Next();
    *ascending &= position >= least_;
    largest = std::max(largest, position);
    least_ = position + 1;
    positions[i] = static_cast<uint32_t>(position);
  }
  return largest;
}

// Bit numbers of flags: i earlier flags, and zeros for all quotients up to gap i, precede flag i.
// So its number less i is the sum of quotients up to the i-th gap.
uint64_t IndexReader::ReadRice(size_t num, uint32_t* positions) {
  const uint64_t last_flag = ReadBitmap(num, positions);
  if (plan_.rice_bits <= kMostRiceBitsAtOnce && num_read_ % 8 == 0) {
    PlaceAtOnce(num, positions);
  } else {
    PlaceOneByOne(num, positions);
  }
  num_read_ += num;
  const uint64_t last = num_read_ - 1;
  return ((last_flag - last) << plan_.rice_bits) + remainders_ + last;
}

void IndexReader::PlaceAtOnce(size_t num, uint32_t* positions) {
  constexpr size_t kAtOnce = 512;
  uint8_t remainders[kAtOnce] = {};
  const uint32_t k = plan_.rice_bits;
  for (size_t done = 0; done < num; done += kAtOnce) {
    const size_t n = std::min(kAtOnce, num - done);
    const uint64_t first = num_read_ + done;
    if (k > 0) UnpackCodes(fields_ + first / 8 * k, n, k, remainders);
    const uint32_t before = static_cast<uint32_t>(remainders_);
    const uint32_t sum =
        PositionsOfFlags(positions + done, remainders, n, k, static_cast<uint32_t>(first), before);
    remainders_ += sum - before;
  }
}

void IndexReader::PlaceOneByOne(size_t num, uint32_t* positions) {
  FieldReader fields(fields_, fields_end_, plan_.rice_bits, num_read_);
  uint64_t remainders = remainders_;  // a local: the stores below may not alias it
  for (size_t i = 0; i < num; ++i) {
    remainders += fields.Next();
    const uint64_t entry = num_read_ + i, quotients = positions[i] - entry;
    positions[i] = static_cast<uint32_t>((quotients << plan_.rice_bits) + remainders + entry);
  }
  remainders_ = remainders;
}

}  // namespace thinwire
