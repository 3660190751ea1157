#include "compress/cuda/kept_values.h"

#include "compress/cpu/entries_header.h"
#include "compress/cpu/range_header.h"
#include "compress/cuda/payload.h"
#include "compress/cuda/uniform.h"
#include "compress/cuda/values.h"
#include "compress/half.h"
#include "compress/layout.h"
#include "tensor/cuda/error.h"

namespace thinwire {
namespace {

bool IsNarrow(const CodecSpec& spec) {
  return spec.values == Values::kBF16 || spec.values == Values::kF16;
}

}  // namespace

Error KeptValues::Reserve(const CodecSpec& spec, int64_t most) {
  spec_ = spec;
  most_ = most;
  RETURN_ERROR(values_.Reserve(4 * (most + 1)));
  return IsNarrow(spec) ? narrow_.Reserve(2 * (most + 1)) : Error{};
}

Error KeptValues::Submit(const uint64_t* count, const uint32_t* largest) {
  if (!IsNarrow(spec_)) return Error{};
  return SubmitNarrowValues(device_, data(), count, most_, spec_.values, largest,
                            narrow_.as<uint16_t>());
}

Error KeptValues::SubmitMeans(int64_t count, const PayloadTarget& out) {
  const size_t bytes = ValueBytes(spec_, count);
  RETURN_ERROR(narrow_.Reserve(bytes + 8));
  RETURN_ERROR(cells_.Reserve(count + 1));
  RETURN_ERROR(
      SubmitMeanValues(device_, data(), count, spec_, cells_.as<uint8_t>(), narrow_.as<uint8_t>()));
  return out.SubmitCopy(device_, 0, narrow_.as<void>(), bytes);
}

Error KeptValues::SubmitCopy(int64_t count, uint64_t random_key, const PayloadTarget& out) {
  const size_t bytes = ValueBytes(spec_, count);
  if (spec_.values == Values::kUniform) {
    size_t written = 0;
    KernelContext context;
    context.random_key = random_key;
    PayloadTarget codes = out;
    codes.capacity = bytes;
    codes.bytes = &written;
    return CudaUniformEncode(device_, CodecOfValues(spec_), ViewOf(data(), DType::kF32, {count}),
                             context, codes);
  }
  if (bytes == 0) return Error{};
  if (spec_.values == Values::kMeans) return SubmitMeans(count, out);
  const void* const from = IsNarrow(spec_) ? narrow_.as<void>() : data();
  return out.SubmitCopy(device_, 0, from, bytes);
}

int16_t ValueExponentFor(const CodecSpec& spec, uint32_t largest) {
  return spec.values == Values::kF16 ? PreScaleFor(FloatOf(largest)) : int16_t{0};
}

Error PayloadValues::Submit(const PayloadSource& bytes, int64_t count, const CodecSpec& spec,
                            int exponent) {
  RETURN_ERROR(CheckValueExponent(spec, exponent));
  if (spec.values == Values::kUniform) {
    RETURN_ERROR(memory_.Reserve(4 * (count + 1)));
    result_ = {memory_.as<void>(), Values::kF32, 1};
    PayloadSource codes = bytes;
    codes.bytes = ValueBytes(spec, count);
    return CudaUniformDecode(device_, codes, CodecOfValues(spec), KernelContext{},
                             ViewOf(memory_.as<void>(), DType::kF32, {count}));
  }
  const size_t value_bytes = ValueBytes(spec, count);
  if (spec.values == Values::kMeans && count > 0) {
    uint8_t last_byte = 0;
    RETURN_ERROR(bytes.Read(device_, value_bytes - 1, &last_byte));
    RETURN_ERROR(CheckLastByte(last_byte, spec, count));
    RETURN_ERROR(bytes.SubmitWords(device_, 0, value_bytes, &codes_));
    RETURN_ERROR(memory_.Reserve(4 * (count + 1)));
    result_ = {memory_.as<void>(), Values::kF32, 1};
    return SubmitReadMeanValues(device_, codes_.as<uint8_t>(), count, spec, memory_.as<float>());
  }
  RETURN_ERROR(bytes.SubmitWords(device_, 0, value_bytes, &memory_));
  result_ = {memory_.as<void>(), spec.values, PowerOfTwo(-exponent)};
  return Error{};
}

}  // namespace thinwire
