// Tests that payloads in a GPU's memory have the bytes, the decoding and the errors of those on the
// host.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compress/codec.h"
#include "compress/codecs/new_codec.h"
#include "compress/cuda/twins_testing.h"
#include "compress/sample_specs_testing.h"
#include "compress/support.h"

namespace thinwire {
namespace {

// Returns sample specifications of codecs that take payloads on the device.
std::vector<CodecSpec> SpecsOnDevice() {
  std::vector<CodecSpec> specs;
  for (const CodecSpec& spec : SampleSpecsOfAll()) {
    if (CodesOnDevice(spec, *GpuTwin().kernels)) specs.push_back(spec);
  }
  return specs;
}

// A codec on the GPU, and what its messages need.
class PlacedCodec {
 public:
  PlacedCodec(const CodecSpec& spec, const Tensor& activation)
      : codec_(std::move(*NewCodec(spec, GpuTwin().kernels))),
        support_(*SupportMap::Of(On(GpuTwin().device, activation), GpuTwin().kernels)) {}

  absl::StatusOr<std::vector<uint8_t>> Encode(const Tensor& host_x, bool on_device) const {
    const Tensor x = On(GpuTwin().device, host_x);
    Device* const holder = HolderOf(on_device);
    const auto memory = *Buffer::Allocate(holder, codec_->MaxPayloadBytes(x.shape(), x.dtype()));
    auto* const data = static_cast<uint8_t*>(memory->data());
    const auto bytes = codec_->Encode(x, Context(on_device), absl::MakeSpan(data, memory->bytes()));
    if (!bytes.ok()) return bytes.status();
    std::vector<uint8_t> payload(*bytes);
    EXPECT_TRUE(holder->CopyToHost(payload.data(), data, *bytes).ok());
    return payload;
  }

  absl::StatusOr<std::vector<uint8_t>> Decode(const std::vector<uint8_t>& payload,
                                              const Tensor& like, bool on_device) const {
    Device* const holder = HolderOf(on_device);
    const auto memory = *Buffer::Allocate(holder, payload.size());
    const auto* const data = static_cast<const uint8_t*>(memory->data());
    EXPECT_TRUE(holder->CopyFromHost(memory->data(), payload.data(), payload.size()).ok());
    Tensor x = *Tensor::Allocate(GpuTwin().device, like.dtype(), like.shape());
    const absl::Status status =
        codec_->Decode(absl::MakeSpan(data, payload.size()), Context(on_device), &x);
    if (!status.ok()) return status;
    return BytesOf(x);
  }

 private:
  static Device* HolderOf(bool on_device) { return (on_device ? GpuTwin() : CpuTwin()).device; }
  MessageContext Context(bool on_device) const {
    MessageContext context;
    context.random_key = kRandomKey;
    context.payload_is_on_device = on_device;
    if (codec_->spec().needs_support()) context.support = &support_;
    return context;
  }

  const std::unique_ptr<Codec> codec_;
  const SupportMap support_;
};

// Returns tensors that encoders treat in ways of their own.
std::vector<NamedValues> FewCases(int64_t n) {
  std::vector<NamedValues> cases;
  for (const NamedValues& c : CasesOf(n)) {
    for (const char* const name : {"normal", "zeros", "constant", "NaN"}) {
      if (c.name == name) cases.push_back(c);
    }
  }
  return cases;
}

// A short message and the activation whose non-zeros are its support.
struct Messages {
  explicit Messages(DType dtype) {
    std::vector<float> activation = NormalValues(shape.elements(), 5);
    for (float& value : activation) value = value > 0 ? value : 0;
    support = HostTensor(shape, dtype, activation);
    x = HostTensor(shape, dtype, NormalValues(shape.elements()));
  }

  const Shape shape = {3, 5, 33};
  Tensor x, support;
};

class PayloadPlaceTest : public testing::TestWithParam<DType> {};

TEST_P(PayloadPlaceTest, EncodingAndDecodingDoNotDependOnIt) {
  const Messages messages(GetParam());
  std::set<CodecKind> kinds;
  for (const CodecSpec& spec : SpecsOnDevice()) {
    SCOPED_TRACE(spec.ToString());
    kinds.insert(spec.kind);
    const PlacedCodec codec(spec, messages.support);
    for (const NamedValues& c : FewCases(messages.x.elements())) {
      SCOPED_TRACE(c.name);
      const Tensor x = HostTensor(messages.shape, GetParam(), c.values);
      const auto expected = codec.Encode(x, /*on_device=*/false);
      const auto met = codec.Encode(x, /*on_device=*/true);
      ASSERT_EQ(met.status(), expected.status());
      if (!expected.ok()) continue;
      EXPECT_TRUE(*met == *expected);
      EXPECT_TRUE(*codec.Decode(*met, x, /*on_device=*/true) ==
                  *codec.Decode(*met, x, /*on_device=*/false));
    }
  }
  EXPECT_EQ(kinds.size(), 10) << "all but low_rank and plug-ins";
}

TEST_P(PayloadPlaceTest, MalformedPayloadsHaveTheSameErrors) {
  const Messages messages(GetParam());
  for (const CodecSpec& spec : SpecsOnDevice()) {
    SCOPED_TRACE(spec.ToString());
    const PlacedCodec codec(spec, messages.support);
    const std::vector<uint8_t> payload = *codec.Encode(messages.x, /*on_device=*/true);
    for (size_t i = 0; i < payload.size(); i += 1 + i / 4) {
      SCOPED_TRACE(absl::StrCat("byte ", i));
      std::vector<uint8_t> damaged = payload;
      damaged[i] = 0xFF;
      for (const auto& bytes : {damaged, {payload.begin(), payload.begin() + i}}) {
        const auto expected = codec.Decode(bytes, messages.x, /*on_device=*/false);
        const auto met = codec.Decode(bytes, messages.x, /*on_device=*/true);
        ASSERT_EQ(met.status(), expected.status());
        EXPECT_TRUE(!met.ok() || *met == *expected);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PayloadPlaceTest, testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& info) { return std::string(Name(info.param)); });

// Tests codecs that the host has a part in: their payloads stay on the host.
TEST(CodesOnDeviceTest, IsOfTheKernelsAlone) {
  const CodecKernels& gpu = *GpuTwin().kernels;
  CodecSpec topk = DefaultSpec(CodecKind::kTopK);
  topk.ratio = 0.1;
  EXPECT_TRUE(CodesOnDevice(topk, gpu));
  EXPECT_FALSE(CodesOnDevice(topk, *CpuTwin().kernels));
  CodecSpec shared = topk, framed = topk, supported = DefaultSpec(CodecKind::kUniform);
  shared.indices = Indices::kShared;
  framed.lossless = Lossless::kEntropy;
  supported.support = Support::kReceivedNonzero;
  CodecSpec ecsq = DefaultSpec(CodecKind::kEcsq);
  ecsq.lossless = Lossless::kNone;
  EXPECT_TRUE(CodesOnDevice(ecsq, gpu));
  CodecSpec rated = ecsq, principal = ecsq, divided = ecsq;
  divided.outliers = 1;
  rated.rate = 2;
  principal.rotation = Rotation::kPrincipal;
  principal.rotation_every = 1;
  const CodecSpec low_rank = DefaultSpec(CodecKind::kLowRank);
  const CodecSpec plugin = DefaultSpec(CodecKind::kPlugin);
  for (const CodecSpec& spec :
       {shared, framed, supported, rated, principal, divided, low_rank, plugin}) {
    EXPECT_FALSE(CodesOnDevice(spec, gpu)) << spec.ToString();
  }
}

}  // namespace
}  // namespace thinwire
