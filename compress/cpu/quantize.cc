#include "compress/cpu/quantize.h"

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/cpu/quantize.cc"
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
constexpr size_t kLanes = hn::MaxLanes(F32());

// Parameters of elements [i, i + left): the same for all, or one per element.
struct OneEncodeLine {
  explicit OneEncodeLine(const EncodeLine& line)
      : offset(hn::Set(F32(), line.offset)),
        lift(hn::Set(F32(), line.lift)),
        inverse(hn::Set(F32(), line.inverse)) {}
  HWY_INLINE Floats Map(Floats x, size_t, size_t) const {
    return hn::Mul(hn::Mul(hn::Sub(x, offset), lift), inverse);
  }
  Floats offset, lift, inverse;
};
struct ManyEncodeLines {
  explicit ManyEncodeLines(const EncodeLines& lines) : lines(lines) {}
  HWY_INLINE Floats Map(Floats x, size_t i, size_t left) const {
    const auto centred = hn::Sub(x, LoadPart(F32(), lines.offset + i, left));
    return hn::Mul(hn::Mul(centred, LoadPart(F32(), lines.lift + i, left)),
                   LoadPart(F32(), lines.inverse + i, left));
  }
  EncodeLines lines;
};

// Rounds up with the probability of the fraction: 24 random bits as a number in [0, 1) are compared
// with it.
HWY_INLINE hn::Vec<I32> RoundUpByChance(Floats y, const uint32_t* random, size_t left) {
  const auto whole = hn::Floor(y);
  const auto bits = hn::BitCast(I32(), hn::ShiftRight<8>(LoadPart(U32(), random, left)));
  const auto chance = hn::Mul(hn::ConvertTo(F32(), bits), hn::Set(F32(), 0x1p-24f));
  const auto up = hn::Lt(chance, hn::Sub(y, whole));
  return hn::ConvertTo(I32(), hn::Add(whole, hn::IfThenElseZero(up, hn::Set(F32(), 1.0f))));
}

template <class Lines>
HWY_INLINE void QuantizeAll(const float* HWY_RESTRICT x, size_t n, const Lines& lines,
                            int32_t zero_code, int32_t max_code,
                            const uint32_t* HWY_RESTRICT random, uint8_t* HWY_RESTRICT codes) {
  const auto least = hn::Set(F32(), static_cast<float>(-zero_code));
  const auto most = hn::Set(F32(), static_cast<float>(max_code - zero_code));
  const auto zero = hn::Set(I32(), zero_code);
  for (size_t i = 0; i < n; i += kLanes) {
    const size_t left = n - i;
    PrefetchPage(x + i);
    const auto mapped = lines.Map(LoadPart(F32(), x + i, left), i, left);
    const auto y = hn::Min(hn::Max(mapped, least), most);
    const auto rounded =
        random == nullptr ? hn::NearestInt(y) : RoundUpByChance(y, random + i, left);
    StorePart(hn::DemoteTo(U8(), hn::Add(rounded, zero)), U8(), codes + i, left);
  }
}

void QuantizeImpl(const float* x, size_t n, const EncodeLine& line, int32_t zero_code,
                  int32_t max_code, const uint32_t* random, uint8_t* codes) {
  QuantizeAll(x, n, OneEncodeLine(line), zero_code, max_code, random, codes);
}

void QuantizeEachImpl(const float* x, size_t n, const EncodeLines& lines, int32_t zero_code,
                      int32_t max_code, const uint32_t* random, uint8_t* codes) {
  QuantizeAll(x, n, ManyEncodeLines(lines), zero_code, max_code, random, codes);
}

HWY_INLINE Floats GridSteps(const uint8_t* HWY_RESTRICT codes, size_t left, hn::Vec<I32> zero,
                            Floats reciprocal) {
  const auto code = hn::PromoteTo(I32(), LoadPart(U8(), codes, left));
  return hn::Mul(hn::ConvertTo(F32(), hn::Sub(code, zero)), reciprocal);
}

void DequantizeImpl(const uint8_t* HWY_RESTRICT codes, size_t n, const DecodeLine& line,
                    int32_t zero_code, float reciprocal, float* HWY_RESTRICT x) {
  const F32 d;
  const auto zero = hn::Set(I32(), zero_code);
  const auto step = hn::Set(d, reciprocal);
  const auto range = hn::Set(d, line.range);
  const auto offset = hn::Set(d, line.offset);
  for (size_t i = 0; i < n; i += kLanes) {
    const auto t = GridSteps(codes + i, n - i, zero, step);
    StorePart(hn::Add(hn::Mul(t, range), offset), d, x + i, n - i);
  }
}

void DequantizeEachImpl(const uint8_t* HWY_RESTRICT codes, size_t n, const DecodeLines& lines,
                        int32_t zero_code, float reciprocal, float* HWY_RESTRICT x) {
  const F32 d;
  const auto zero = hn::Set(I32(), zero_code);
  const auto step = hn::Set(d, reciprocal);
  for (size_t i = 0; i < n; i += kLanes) {
    const auto t = GridSteps(codes + i, n - i, zero, step);
    const auto scaled = hn::Mul(t, LoadPart(d, lines.range + i, n - i));
    StorePart(hn::Add(scaled, LoadPart(d, lines.offset + i, n - i)), d, x + i, n - i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {

HWY_EXPORT(QuantizeImpl);
HWY_EXPORT(QuantizeEachImpl);
HWY_EXPORT(DequantizeImpl);
HWY_EXPORT(DequantizeEachImpl);

void Quantize(const float* x, size_t n, const EncodeLine& line, int32_t zero_code, int32_t max_code,
              const uint32_t* random, uint8_t* codes) {
  HWY_DYNAMIC_DISPATCH(QuantizeImpl)(x, n, line, zero_code, max_code, random, codes);
}
void QuantizeEach(const float* x, size_t n, const EncodeLines& lines, int32_t zero_code,
                  int32_t max_code, const uint32_t* random, uint8_t* codes) {
  HWY_DYNAMIC_DISPATCH(QuantizeEachImpl)(x, n, lines, zero_code, max_code, random, codes);
}
void Dequantize(const uint8_t* codes, size_t n, const DecodeLine& line, int32_t zero_code,
                float reciprocal, float* x) {
  HWY_DYNAMIC_DISPATCH(DequantizeImpl)(codes, n, line, zero_code, reciprocal, x);
}
void DequantizeEach(const uint8_t* codes, size_t n, const DecodeLines& lines, int32_t zero_code,
                    float reciprocal, float* x) {
  HWY_DYNAMIC_DISPATCH(DequantizeEachImpl)(codes, n, lines, zero_code, reciprocal, x);
}

}  // namespace thinwire
#endif  // HWY_ONCE
