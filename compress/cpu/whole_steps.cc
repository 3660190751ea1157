#include "compress/cpu/whole_steps.h"

#include <limits>

#include "compress/cpu/ecsq_header.h"

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/cpu/whole_steps.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "compress/cpu/partial-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

using F32 = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F32>;
using U32 = hn::RebindToUnsigned<F32>;
using U8 = hn::Rebind<uint8_t, F32>;
using Floats = hn::Vec<F32>;
using Ints = hn::Vec<I32>;
constexpr size_t kLanes = hn::MaxLanes(F32());

// Returns the upper 24 bits of each random number, as a number in [0, 1).
HWY_INLINE Floats Chances(const uint32_t* random, size_t left) {
  const auto bits = hn::BitCast(I32(), hn::ShiftRight<8>(LoadPart(U32(), random, left)));
  return hn::Mul(hn::ConvertTo(F32(), bits), hn::Set(F32(), 0x1p-24f));
}
HWY_INLINE Floats Dithers(const uint32_t* random, size_t left) {
  return hn::Sub(Chances(random, left), hn::Set(F32(), 0.5f));
}

template <Rounding kRounding>
HWY_INLINE Ints Rounded(Floats y, const uint32_t* random, size_t left) {
  switch (kRounding) {
    case Rounding::kNearest:
      break;
    case Rounding::kStochastic: {
      const auto whole = hn::Floor(y);
      const auto up = hn::Lt(Chances(random, left), hn::Sub(y, whole));
      return hn::ConvertTo(I32(), hn::Add(whole, hn::IfThenElseZero(up, hn::Set(F32(), 1.0f))));
    }
    case Rounding::kDither:
      return hn::NearestInt(hn::Add(y, Dithers(random, left)));
    case Rounding::kDeadZone:
    case Rounding::kRateDistortion: {
      const auto magnitude = hn::Add(hn::Abs(y), hn::Set(F32(), 1.0f / 3));
      return hn::ConvertTo(I32(), hn::CopySign(hn::Floor(magnitude), y));
    }
    case Rounding::kNearestNonzero: {
      const auto least = hn::IfThenZeroElse(hn::Eq(y, hn::Zero(F32())), hn::Set(F32(), 1.0f));
      return hn::NearestInt(hn::CopySign(hn::Max(hn::Abs(y), least), y));
    }
  }
  return hn::NearestInt(y);
}

// Sums of CellSums in vector lanes, for one block, whose elements are too few to overflow 32 bits.
// A lane of both_ holds a count above 24 bits of a sum of fractions, so one addition adds to both.
class CellLanes {
 public:
  HWY_INLINE CellLanes() {
    HWY_UNROLL(4)
    for (int m = 0; m < kMeans; ++m) count_[m] = fractions_[m] = both_[m] = hn::Zero(I32());
  }
  HWY_INLINE void Add(Floats y, Ints codes) {
    const auto magnitude = hn::Abs(codes);
    const auto above = hn::Sub(hn::Abs(y), hn::ConvertTo(F32(), magnitude));
    // Adding 1.5 * 2^23 rounds to nearest even, and leaves the integer in the float's lower bits.
    // Subtracting the constant's bits gives it, and 2^24 more counts one.
    constexpr float kWhole = 0x1.8p23f;
    constexpr int32_t kBitsOfWhole = 0x4B400000;
    const auto units = hn::Mul(above, hn::Set(F32(), kFractionUnit));
    const auto bits = hn::BitCast(I32(), hn::Add(units, hn::Set(F32(), kWhole)));
    const auto one = hn::Sub(bits, hn::Set(I32(), kBitsOfWhole - (1 << kFractionBits)));
    HWY_UNROLL(4)
    for (int m = 0; m < kMeans; ++m) {
      const auto is_m = hn::Eq(magnitude, hn::Set(I32(), m + 1));
      both_[m] = hn::Add(both_[m], hn::IfThenElseZero(is_m, one));
    }
    if (++added_ == kMostAdded) Split();
  }
  HWY_INLINE void AddTo(CellSums* sums) {
    Split();
    HWY_ALIGN int32_t lanes[kLanes];
    const auto sum = [&lanes](Ints v) HWY_ATTR {
      hn::Store(v, I32(), lanes);
      int64_t sum = 0;
      for (const int32_t lane : lanes) sum += lane;
      return sum;
    };
    HWY_UNROLL(4)
    for (int m = 0; m < kMeans; ++m) {
      sums->count[m] += sum(count_[m]);
      sums->fractions[m] += sum(fractions_[m]);
    }
  }

 private:
  // A value lies at most two and a half steps above its magnitude, that is 2.5 * 2^16 units. So 32
  // of them add up within 24 bits.
  static constexpr int kFractionBits = 24, kMostAdded = 32;

  // Moves both_ to the two sums. Shifting up and back extends the fraction's sign from 24 bits.
  HWY_INLINE void Split() {
    HWY_UNROLL(4)
    for (int m = 0; m < kMeans; ++m) {
      constexpr int kRest = 32 - kFractionBits;
      const auto fraction = hn::ShiftRight<kRest>(hn::ShiftLeft<kRest>(both_[m]));
      fractions_[m] = hn::Add(fractions_[m], fraction);
      count_[m] = hn::Add(count_[m], hn::ShiftRight<kFractionBits>(hn::Sub(both_[m], fraction)));
      both_[m] = hn::Zero(I32());
    }
    added_ = 0;
  }

  Ints count_[kMeans], fractions_[kMeans];
  Ints both_[kMeans];  // values since the last Split: counts above sums of fractions
  int added_ = 0;
};

template <Rounding kRounding, bool kSums>
HWY_INLINE uint32_t ToWholeStepsAll(const float* HWY_RESTRICT x, size_t n, float step,
                                    const uint32_t* HWY_RESTRICT random,
                                    int32_t* HWY_RESTRICT codes, uint8_t* HWY_RESTRICT bytes,
                                    CellSums* sums) {
  const auto steps = hn::Set(F32(), step);
  CellLanes cells;
  auto largest = hn::Zero(U32());
  for (size_t i = 0; i < n; i += kLanes) {
    const size_t left = n - i;
    PrefetchPage(x + i);
    const auto y = hn::Div(LoadPart(F32(), x + i, left), steps);
    const auto code = Rounded<kRounding>(y, random == nullptr ? nullptr : random + i, left);
    if (kSums) cells.Add(y, code);
    // Zigzag: twice the code, and all bits flipped if it is negative.
    const auto zigzag =
        hn::BitCast(U32(), hn::Xor(hn::ShiftLeft<1>(code), hn::BroadcastSignBit(code)));
    const auto byte = hn::Min(zigzag, hn::Set(U32(), kEscape));
    // Lanes behind the last element hold zero plus noise, no large code.
    largest = hn::Max(largest, zigzag);
    StorePart(code, I32(), codes + i, left);
    StorePart(hn::TruncateTo(U8(), byte), U8(), bytes + i, left);
  }
  if (kSums) cells.AddTo(sums);
  return hn::GetLane(hn::MaxOfLanes(U32(), largest));
}

uint32_t ToWholeStepsImpl(const float* x, size_t n, float step, Rounding rounding,
                          const uint32_t* random, int32_t* codes, uint8_t* bytes, CellSums* sums) {
  const auto run = [&](auto all) { return all(x, n, step, random, codes, bytes, sums); };
  switch (rounding) {
    case Rounding::kNearest:
      return sums == nullptr ? run(ToWholeStepsAll<Rounding::kNearest, false>)
                             : run(ToWholeStepsAll<Rounding::kNearest, true>);
    case Rounding::kStochastic:
      return run(ToWholeStepsAll<Rounding::kStochastic, false>);
    case Rounding::kDither:
      return run(ToWholeStepsAll<Rounding::kDither, false>);
    case Rounding::kDeadZone:
    case Rounding::kRateDistortion:
      return sums == nullptr ? run(ToWholeStepsAll<Rounding::kDeadZone, false>)
                             : run(ToWholeStepsAll<Rounding::kDeadZone, true>);
    case Rounding::kNearestNonzero:
      return sums == nullptr ? run(ToWholeStepsAll<Rounding::kNearestNonzero, false>)
                             : run(ToWholeStepsAll<Rounding::kNearestNonzero, true>);
  }
  return 0;
}

// Returns a magnitude plus the mean of its cell.
HWY_INLINE Floats MagnitudeOf(Ints code, const float* HWY_RESTRICT means) {
  auto mean = hn::Zero(F32());
  for (int m = 0; m < kMeans; ++m) {
    const auto is_m = hn::RebindMask(F32(), hn::Eq(code, hn::Set(I32(), m + 1)));
    mean = hn::IfThenElse(is_m, hn::Set(F32(), means[m]), mean);
  }
  return hn::Add(hn::ConvertTo(F32(), code), mean);
}

void CheapestStepsImpl(const float* HWY_RESTRICT x, size_t n, float step,
                       const float* HWY_RESTRICT means, const uint8_t* HWY_RESTRICT sums,
                       const float* HWY_RESTRICT costs, uint8_t* HWY_RESTRICT bytes,
                       CellSums* cells) {
  constexpr int kMostMagnitude = 127, kCandidates = 3;
  const I32 d;
  CellLanes lanes;
  for (size_t i = 0; i < n; i += kLanes) {
    const size_t left = n - i;
    const auto y = hn::Div(LoadPart(F32(), x + i, left), hn::Set(F32(), step));
    const auto magnitude = hn::Abs(y);
    const auto is_negative = hn::RebindMask(d, hn::Lt(y, hn::Zero(F32())));
    const auto negative = hn::IfThenElseZero(is_negative, hn::Set(d, 1));
    const auto context = hn::ShiftLeft<8>(hn::PromoteTo(d, LoadPart(U8(), sums + i, left)));
    auto candidate = hn::Min(hn::NearestInt(magnitude), hn::Set(d, kMostMagnitude));
    auto code = hn::Zero(d), byte = hn::Zero(d);
    auto least = hn::Set(F32(), std::numeric_limits<float>::infinity());
    for (int below = 0; below < kCandidates; ++below) {
      const auto is_zero = hn::Eq(candidate, hn::Zero(d));
      const auto zigzag =
          hn::IfThenZeroElse(is_zero, hn::Sub(hn::ShiftLeft<1>(candidate), negative));
      const auto error = hn::Sub(magnitude, MagnitudeOf(candidate, means));
      const auto cost =
          hn::Add(hn::Mul(error, error), hn::GatherIndex(F32(), costs, hn::Add(context, zigzag)));
      const auto is_less = hn::Lt(cost, least);
      least = hn::IfThenElse(is_less, cost, least);
      code = hn::IfThenElse(hn::RebindMask(d, is_less), candidate, code);
      byte = hn::IfThenElse(hn::RebindMask(d, is_less), zigzag, byte);
      candidate = hn::Max(hn::Sub(candidate, hn::Set(d, 1)), hn::Zero(d));
    }
    lanes.Add(y, code);
    const auto before = hn::PromoteTo(d, LoadPart(U8(), bytes + i, left));
    byte = hn::IfThenElse(hn::Eq(before, hn::Set(d, kEscape)), before, byte);
    StorePart(hn::DemoteTo(U8(), byte), U8(), bytes + i, left);
  }
  lanes.AddTo(cells);
}

// Returns the value of each code's byte.
HWY_INLINE Floats ValuesOf(Ints zigzag, const float* HWY_RESTRICT means, Floats steps,
                           const uint32_t* random, size_t left) {
  const auto most = hn::Set(F32(), kMaxBFloat), least = hn::Neg(most);
  const auto odd = hn::And(zigzag, hn::Set(I32(), 1));
  const auto code = hn::Xor(hn::ShiftRight<1>(zigzag), hn::Sub(hn::Zero(I32()), odd));
  const auto signed_code = hn::ConvertTo(F32(), code);
  auto y = hn::CopySign(MagnitudeOf(hn::Abs(code), means), signed_code);
  if (random != nullptr) y = hn::Sub(y, Dithers(random, left));
  return hn::Min(hn::Max(hn::Mul(y, steps), least), most);
}

// Values of the first bytes, without noise, in two vectors: a lookup in these is faster than
// computing the value, and most bytes are small.
class FirstValues {
 public:
  static constexpr int kVector = static_cast<int>(kLanes), kCount = 2 * kVector;

  FirstValues() { lower_ = upper_ = hn::Zero(F32()); }
  void Fill(const float* means, Floats steps) {
    lower_ = ValuesOf(hn::Iota(I32(), 0), means, steps, nullptr, kLanes);
    upper_ = ValuesOf(hn::Iota(I32(), kVector), means, steps, nullptr, kLanes);
  }
  HWY_INLINE Floats operator()(Ints zigzag) const {
    const auto lane = hn::And(zigzag, hn::Set(I32(), kVector - 1));
    const auto indices = hn::IndicesFromVec(F32(), lane);
    const auto is_lower = hn::RebindMask(F32(), hn::Eq(lane, zigzag));
    return hn::IfThenElse(is_lower, hn::TableLookupLanes(lower_, indices),
                          hn::TableLookupLanes(upper_, indices));
  }

 private:
  Floats lower_, upper_;
};

uint8_t FromWholeStepsImpl(const uint8_t* HWY_RESTRICT bytes, size_t n, float step,
                           const float* HWY_RESTRICT means, const uint32_t* HWY_RESTRICT random,
                           float* HWY_RESTRICT x) {
  auto largest = hn::Zero(I32());
  const auto steps = hn::Set(F32(), step);
  // For fewer elements, filling the two vectors does not pay.
  const bool has_first_values = random == nullptr && n >= 8 * kLanes;
  FirstValues first_values;
  if (has_first_values) first_values.Fill(means, steps);
  for (size_t i = 0; i < n; i += kLanes) {
    const size_t left = n - i;
    const auto zigzag = hn::PromoteTo(I32(), LoadPart(U8(), bytes + i, left));
    largest = hn::Max(largest, zigzag);
    const auto is_first = hn::Lt(zigzag, hn::Set(I32(), FirstValues::kCount));
    const auto value =
        has_first_values && hn::AllTrue(I32(), is_first)
            ? first_values(zigzag)
            : ValuesOf(zigzag, means, steps, random == nullptr ? nullptr : random + i, left);
    StorePart(value, F32(), x + i, left);
  }
  return static_cast<uint8_t>(hn::GetLane(hn::MaxOfLanes(I32(), largest)));
}

int64_t CountEscapesImpl(const uint8_t* bytes, int64_t n) {
  using Bytes = hn::ScalableTag<uint8_t>;
  constexpr auto kBytes = static_cast<int64_t>(hn::MaxLanes(Bytes()));
  const auto escape = hn::Set(Bytes(), kEscape);
  int64_t count = 0, i = 0;
  for (; i + kBytes <= n; i += kBytes) {
    count += hn::CountTrue(Bytes(), hn::Eq(hn::LoadU(Bytes(), bytes + i), escape));
  }
  for (; i < n; ++i) count += bytes[i] == kEscape;
  return count;
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {

HWY_EXPORT(ToWholeStepsImpl);
HWY_EXPORT(FromWholeStepsImpl);
HWY_EXPORT(CountEscapesImpl);
HWY_EXPORT(CheapestStepsImpl);

uint32_t ToWholeSteps(const float* x, size_t n, float step, Rounding rounding,
                      const uint32_t* random, int32_t* codes, uint8_t* bytes, CellSums* sums) {
  return HWY_DYNAMIC_DISPATCH(ToWholeStepsImpl)(x, n, step, rounding, random, codes, bytes, sums);
}
uint8_t FromWholeSteps(const uint8_t* bytes, size_t n, float step, const float* means,
                       const uint32_t* random, float* x) {
  return HWY_DYNAMIC_DISPATCH(FromWholeStepsImpl)(bytes, n, step, means, random, x);
}

void CheapestSteps(const float* x, size_t n, float step, const float* means, const uint8_t* sums,
                   const float* costs, uint8_t* bytes, CellSums* cells) {
  HWY_DYNAMIC_DISPATCH(CheapestStepsImpl)(x, n, step, means, sums, costs, bytes, cells);
}

int64_t CountEscapes(const uint8_t* bytes, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(CountEscapesImpl)(bytes, n);
}

}  // namespace thinwire
#endif  // HWY_ONCE
