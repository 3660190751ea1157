// Tests that codecs with the lossless stage entropy write the CPU's payloads on a GPU, and decode
// and refuse as it does.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "compress/codec.h"
#include "compress/codecs/new_codec.h"
#include "compress/cuda/twins_testing.h"
#include "compress/entropy/frame.h"
#include "compress/entropy/kernels.h"
#include "compress/entropy/pairs_layout.h"
#include "compress/support.h"

namespace thinwire {
namespace {

constexpr uint8_t kEntropyForm = 2;
constexpr size_t kFormAt = 5;  // of the entropy coder's frame, in a payload

CodecSpec Entropy(CodecSpec spec) {
  spec.lossless = Lossless::kEntropy;
  return spec;
}
CodecSpec Ecsq(double step, Rounding rounding = Rounding::kNearest, Scope scope = Scope::kTensor) {
  CodecSpec spec = DefaultSpec(CodecKind::kEcsq);
  spec.step = step;
  spec.rounding = rounding;
  spec.scope = scope;
  return Entropy(spec);
}

std::vector<CodecSpec> UniformSpecs() {
  std::vector<CodecSpec> specs;
  for (const uint32_t bits : {2, 3, 8}) {
    for (const Range range : {Range::kMinMax, Range::kMaxAbs, Range::kFixedPoint}) {
      CodecSpec& spec = specs.emplace_back(Entropy(DefaultSpec(CodecKind::kUniform)));
      spec.bits = bits;
      spec.range = range;
    }
  }
  CodecSpec& rotated = specs.emplace_back(Entropy(DefaultSpec(CodecKind::kUniform)));
  rotated.bits = 4;
  rotated.rotation = Rotation::kHadamard;
  rotated.rotation_block = 64;
  return specs;
}

std::vector<CodecSpec> SparseSpecs() {
  std::vector<CodecSpec> specs;
  for (const CodecKind kind : {CodecKind::kTopK, CodecKind::kThreshold, CodecKind::kRandomK}) {
    for (const Values values : {Values::kF32, Values::kF16, Values::kBF16, Values::kUniform}) {
      CodecSpec& spec = specs.emplace_back(Entropy(DefaultSpec(kind)));
      spec.values = values;
      spec.bits = 4;
      if (kind == CodecKind::kThreshold) {
        spec.threshold = 1;
        spec.relative_to = RelativeTo::kRms;
      } else {
        spec.ratio = 0.3;
      }
    }
  }
  return specs;
}

// Returns every kind of codec that has a twin of equal bytes, with every form of payload.
std::vector<CodecSpec> Specs() {
  std::vector<CodecSpec> specs;
  for (const CodecKind kind : {CodecKind::kNone, CodecKind::kFp16, CodecKind::kBf16,
                               CodecKind::kFp8, CodecKind::kBlockwise8}) {
    specs.push_back(Entropy(DefaultSpec(kind)));
  }
  for (const CodecSpec& spec : UniformSpecs()) specs.push_back(spec);
  for (const CodecSpec& spec : SparseSpecs()) specs.push_back(spec);
  for (const Rounding rounding :
       {Rounding::kNearest, Rounding::kDeadZone, Rounding::kStochastic, Rounding::kDither}) {
    for (const double step : {0.02, 1.0}) {  // with many escapes, and with none
      specs.push_back(Ecsq(step, rounding));
      specs.push_back(Ecsq(step, rounding, Scope::kToken));
    }
  }
  CodecSpec& rated = specs.emplace_back(Ecsq(1));
  rated.step = DefaultSpec(CodecKind::kEcsq).step;
  rated.rate = 1.5;
  return specs;
}

struct Coder {
  Coder(const Twin& of, const CodecSpec& spec)
      : twin(of), codec(std::move(*NewCodec(spec, of.kernels))) {}

  Twin twin;
  std::unique_ptr<Codec> codec;
};

struct Sent {
  absl::Status status;
  std::vector<uint8_t> payload;
};

Sent Encode(const Coder& coder, const Tensor& host_x, const SupportMap* support = nullptr) {
  const Tensor x = On(coder.twin.device, host_x);
  MessageContext context;
  context.random_key = kRandomKey;
  context.support = support;
  Sent sent;
  sent.payload.resize(coder.codec->MaxPayloadBytes(x.shape(), x.dtype()));
  const auto bytes = coder.codec->Encode(x, context, absl::MakeSpan(sent.payload));
  sent.status = bytes.status();
  sent.payload.resize(bytes.ok() ? *bytes : 0);
  return sent;
}

struct Received {
  absl::Status status;
  std::vector<uint8_t> bytes;
};

Received Decode(const Coder& coder, const std::vector<uint8_t>& payload, const Tensor& like,
                const SupportMap* support = nullptr) {
  Tensor x = *Tensor::Allocate(coder.twin.device, like.dtype(), like.shape());
  MessageContext context;
  context.support = support;
  Received received;
  received.status = coder.codec->Decode(payload, context, &x);
  if (received.status.ok()) received.bytes = BytesOf(x);
  return received;
}

// Expects the same verdict of both codecs on one payload.
void ExpectSameDecoding(const Coder& cpu, const Coder& gpu, const std::vector<uint8_t>& payload,
                        const Tensor& like) {
  const Received expected = Decode(cpu, payload, like), met = Decode(gpu, payload, like);
  EXPECT_EQ(expected.status, met.status);
  EXPECT_TRUE(expected.bytes == met.bytes) << "the decoded tensors differ";
}

// Expects that the GPU itself decodes a frame, not the host in its place.
void ExpectDecodesFrame(const Coder& gpu, const std::vector<uint8_t>& payload, const Tensor& like) {
  CodecSpec spec = gpu.codec->spec();
  spec.lossless = Lossless::kNone;
  const Tensor x = *Tensor::Allocate(gpu.twin.device, like.dtype(), like.shape());
  const Error error = gpu.twin.kernels->entropy()->DecodeFrame(
      {payload.data() + 1, payload.size() - 1},
      gpu.codec->MaxPayloadBytes(like.shape(), like.dtype()) - 1, spec, {}, x.view());
  EXPECT_TRUE(error.ok()) << error.message;
}

// Expects equal payloads and decoding; returns the CPU's payload.
std::vector<uint8_t> ExpectTwins(const CodecSpec& spec, const Tensor& x) {
  const Coder cpu(CpuTwin(), spec), gpu(GpuTwin(), spec);
  const Sent expected = Encode(cpu, x), met = Encode(gpu, x);
  EXPECT_EQ(expected.status, met.status);
  EXPECT_TRUE(expected.payload == met.payload)
      << "payloads of " << expected.payload.size() << " and " << met.payload.size() << " bytes";
  if (!expected.status.ok()) return {};
  ExpectSameDecoding(cpu, gpu, expected.payload, x);
  if (expected.payload[0] == kEntropyForm && spec.rate == 0) {
    ExpectDecodesFrame(gpu, expected.payload, x);
  }
  return expected.payload;
}

const std::vector<Shape>& Shapes() {
  static const std::vector<Shape> shapes = {Shape{},        Shape{0},           Shape{1},
                                            Shape{2, 0, 3}, Shape{127},         Shape{129, 1},
                                            Shape{4, 1025}, Shape{2, 9, 9, 64}, Shape{2, 9001}};
  return shapes;
}

// Returns values whose scale differs by channel and by blocks of four by four pixels, so that codes
// tell how large their neighbours are.
std::vector<float> Patches(const Shape& shape) {
  std::vector<float> x = NormalValues(shape.elements());
  const int64_t channels = shape[3], width = shape[2];
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const auto channel = static_cast<uint32_t>(i % channels);
    const auto column = static_cast<uint32_t>(i / channels % width / 4);
    const auto row = static_cast<uint32_t>(i / (channels * width) / 4);
    const uint32_t hash = ((row * 4 + column) * 24 + channel) * 0x9E3779B9u;
    x[i] = std::ldexp(x[i] * x[i], -static_cast<int>(hash >> 29));
  }
  return x;
}

class CudaEntropyCodecTest : public testing::TestWithParam<DType> {};

TEST_P(CudaEntropyCodecTest, EveryCodecAndShapeHasTheCpusBytes) {
  int frames = 0;
  for (const CodecSpec& spec : Specs()) {
    for (const Shape& shape : Shapes()) {
      SCOPED_TRACE(absl::StrCat(spec.ToString(), " ", shape.ToString()));
      const auto payload =
          ExpectTwins(spec, HostTensor(shape, GetParam(), NormalValues(shape.elements())));
      frames += !payload.empty() && payload[0] == kEntropyForm;
    }
  }
  EXPECT_GE(frames, 100);
}

TEST_P(CudaEntropyCodecTest, SpecialValuesHaveTheCpusBytesAndErrors) {
  const Shape shape = {3, 5, 33};
  for (const CodecSpec& spec : Specs()) {
    for (const NamedValues& c : CasesOf(shape.elements())) {
      SCOPED_TRACE(absl::StrCat(spec.ToString(), " of ", c.name));
      ExpectTwins(spec, HostTensor(shape, GetParam(), c.values));
    }
  }
}

TEST_P(CudaEntropyCodecTest, CodesHaveTheCpusNeighboursAndPairs) {
  const Shape shape = {4, 16, 16, 48};
  const Tensor patches = HostTensor(shape, GetParam(), Patches(shape));
  const Tensor normal = HostTensor(shape, GetParam(), NormalValues(shape.elements()));
  int neighbours = 0, pairs = 0;
  for (const double step : {0.1, 0.5, 2.0}) {
    for (const Rounding rounding : {Rounding::kNearest, Rounding::kDither}) {
      const CodecSpec spec = Ecsq(step, rounding);
      SCOPED_TRACE(spec.ToString());
      const auto of_patches = ExpectTwins(spec, patches), of_normal = ExpectTwins(spec, normal);
      neighbours += of_patches[kFormAt] > 0 && of_patches[kFormAt] < kPairsForm;
      pairs += of_normal[kFormAt] == kPairsForm;
    }
  }
  EXPECT_GE(neighbours, 2);
  EXPECT_GE(pairs, 2);
}

INSTANTIATE_TEST_SUITE_P(Types, CudaEntropyCodecTest, testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& info) { return std::string(Name(info.param)); });

// Returns codecs whose payload for a short message is a frame.
std::vector<CodecSpec> SpecsToDamage() {
  std::vector<CodecSpec> specs = {Ecsq(1), Ecsq(0.02, Rounding::kDither),
                                  Entropy(DefaultSpec(CodecKind::kBf16))};
  for (const CodecKind kind : {CodecKind::kUniform, CodecKind::kFp8, CodecKind::kBlockwise8}) {
    specs.push_back(Entropy(DefaultSpec(kind)));
  }
  CodecSpec& topk = specs.emplace_back(Entropy(DefaultSpec(CodecKind::kTopK)));
  topk.ratio = 0.2;
  return specs;
}

// Returns quarters, most of them zero and a few large: for any codec, their bytes are worth coding.
Tensor Peaked() {
  std::vector<float> values = NormalValues(1200);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = i % 5 == 0 ? std::round(values[i] * 4) / 4 : 0;
    if (i % 400 == 7) values[i] *= 30;
  }
  return HostTensor({3, 400}, DType::kF32, values);
}

TEST(CudaEntropyCodecDamageTest, HasTheCpusVerdicts) {
  const Tensor x = Peaked();
  for (const CodecSpec& spec : SpecsToDamage()) {
    SCOPED_TRACE(spec.ToString());
    const Coder cpu(CpuTwin(), spec), gpu(GpuTwin(), spec);
    const std::vector<uint8_t> payload = Encode(cpu, x).payload;
    ASSERT_EQ(payload[0], kEntropyForm);
    for (size_t i = 0; i < payload.size(); ++i) {
      SCOPED_TRACE(absl::StrCat("byte ", i));
      std::vector<uint8_t> damaged(payload.begin(), payload.begin() + i);
      ExpectSameDecoding(cpu, gpu, damaged, x);
      damaged = payload;
      damaged[i] ^= 1 << i % 8;
      ExpectSameDecoding(cpu, gpu, damaged, x);
    }
    std::vector<uint8_t> longer = payload;
    longer.push_back(0);
    ExpectSameDecoding(cpu, gpu, longer, x);
  }
}

// Tests valid frames around malformed payloads: the codec's own decoder refuses them on the device,
// and the host says why.
TEST(CudaEntropyCodecDamageTest, HasTheCpusWordsForPayloadsInFrames) {
  const Tensor x = Peaked();
  for (const CodecSpec& spec : SpecsToDamage()) {
    SCOPED_TRACE(spec.ToString());
    CodecSpec plain = spec;
    plain.lossless = Lossless::kNone;
    const Coder cpu(CpuTwin(), spec), gpu(GpuTwin(), spec);
    const std::vector<uint8_t> payload = Encode(Coder(CpuTwin(), plain), x).payload;
    for (size_t i = 0; i < payload.size(); i += 1 + i / 16) {
      for (const uint8_t value : {0x00, 0x7F, 0x80, 0xFF}) {
        SCOPED_TRACE(absl::StrCat("byte ", i, " is ", value));
        std::vector<uint8_t> damaged = payload;
        damaged[i] = value;
        const auto frame = EntropyFrame(damaged, {});
        std::vector<uint8_t> framed = {kEntropyForm};
        framed.insert(framed.end(), frame.begin(), frame.end());
        if (!frame.empty()) ExpectSameDecoding(cpu, gpu, framed, x);
      }
    }
  }
}

// Tests codecs on a support. ecsq's support is applied by a codec around it, so that the host does
// its entropy coding.
TEST(CudaEntropyCodecSupportTest, HasTheCpusBytes) {
  const Shape shape = {3, 700};
  std::vector<float> activation = NormalValues(shape.elements(), 5);
  for (float& value : activation) value = std::fmax(value, 0.0f);
  const Tensor zeros = HostTensor(shape, DType::kF32, activation);
  const Tensor x = HostTensor(shape, DType::kF32, NormalValues(shape.elements(), 6));
  for (CodecSpec spec : {Ecsq(1), SparseSpecs()[0], SparseSpecs()[3]}) {
    spec.support = Support::kReceivedNonzero;
    SCOPED_TRACE(spec.ToString());
    const Coder cpu(CpuTwin(), spec), gpu(GpuTwin(), spec);
    const SupportMap on_cpu = *SupportMap::Of(zeros, CpuTwin().kernels);
    const SupportMap on_gpu = *SupportMap::Of(On(GpuTwin().device, zeros), GpuTwin().kernels);
    const Sent expected = Encode(cpu, x, &on_cpu), met = Encode(gpu, x, &on_gpu);
    ASSERT_TRUE(expected.status.ok()) << expected.status;
    EXPECT_EQ(expected.status, met.status);
    EXPECT_TRUE(expected.payload == met.payload);
    EXPECT_TRUE(Decode(cpu, expected.payload, x, &on_cpu).bytes ==
                Decode(gpu, expected.payload, x, &on_gpu).bytes);
  }
}

}  // namespace
}  // namespace thinwire
