#include <cstdint>
#include <memory>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "compress/codec.h"
#include "compress/codecs/new_codec.h"
#include "compress/codecs/rates.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

absl::StatusOr<Tensor> NormalTensor(const Shape& shape) {
  ASSIGN_OR_RETURN(Tensor x, Tensor::Allocate(CpuDevice(), DType::kF32, shape));
  RandomStream random(RandomKey(1, "least rate"));
  for (float& value : x.floats()) {
    value = -6;
    for (int i = 0; i < 12; ++i) value += random.NextFloat();
  }
  return x;
}

}  // namespace

absl::StatusOr<double> MeasureLeastRate(const CodecSpec& spec, const Shape& shape,
                                        CodecKernels* kernels) {
  CodecSpec coarsest = spec;
  coarsest.rate = 0;
  coarsest.step = kMostStep;
  coarsest.rotation = Rotation::kNone;
  coarsest.rotation_every = 0;
  coarsest.support = Support::kAll;
  ASSIGN_OR_RETURN(const std::unique_ptr<Codec> codec, NewCodec(coarsest, kernels));
  const Shape coded = spec.needs_support() ? Shape{(shape.elements() + 1) / 2} : shape;
  ASSIGN_OR_RETURN(const Tensor x, NormalTensor(coded));
  std::vector<uint8_t> payload(codec->MaxPayloadBytes(coded, x.dtype()));
  ASSIGN_OR_RETURN(const size_t bytes, codec->Encode(x, {RandomKey(1, "least rate rounding")},
                                                     absl::MakeSpan(payload)));
  return 8 * static_cast<double>(bytes) / static_cast<double>(shape.elements());
}

}  // namespace thinwire
