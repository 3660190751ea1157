// Tests that a direction whose payloads stay in a GPU's memory has the payloads, tensors, losses
// and errors of one whose payloads are on the host. The GPU is the emulated one.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "compress/cuda/kernels.h"
#include "stage_server/boundary/decoder.h"
#include "stage_server/boundary/encoder.h"
#include "tensor/copy_testing.h"
#include "tensor/cpu/device.h"
#include "tensor/cuda/device.h"

namespace thinwire {
namespace {

CudaDevice* EmulatedDevice() {
  static CudaDevice* const device = [] {
    CudaDevice* opened = nullptr;
    EXPECT_TRUE(NewCudaDevice(0, &opened).ok());
    return opened;
  }();
  return device;
}

CodecKernels* EmulatedKernels() {
  static CodecKernels* const kernels = new CudaKernels(EmulatedDevice());
  return kernels;
}

constexpr int64_t kSamples = 2, kFeatures = 40000;

BoundarySpec SpecOnDevice(CodecKind kind, FeedbackKind feedback) {
  BoundarySpec spec;
  spec.name = "layer1";
  spec.direction = DIRECTION_ACTIVATION;
  spec.sample = {1, kFeatures};
  spec.max_batch = kSamples;
  spec.error_every = 1;
  spec.device = EmulatedDevice();
  spec.kernels = EmulatedKernels();
  spec.codec = DefaultSpec(kind);
  if (kind == CodecKind::kTopK) spec.codec.ratio = 0.3;
  spec.codec.lossless = Lossless::kNone;
  spec.feedback.kind = feedback;
  return spec;
}

std::vector<uint8_t> PayloadBytesOf(const Message& message) {
  const auto& payload = message.payload;
  std::vector<uint8_t> bytes(payload.bytes.size());
  Device* const device = payload.device == nullptr ? CpuDevice() : EmulatedDevice();
  EXPECT_TRUE(device->CopyToHost(bytes.data(), payload.bytes.data(), bytes.size()).ok());
  return bytes;
}

// Returns the payload moved to memory of that device.
Payload MovedTo(Device* device, const std::vector<uint8_t>& bytes) {
  auto buffer = *Buffer::Allocate(device, bytes.size());
  EXPECT_TRUE(device->CopyFromHost(buffer->data(), bytes.data(), bytes.size()).ok());
  const auto* const data = static_cast<const uint8_t*>(buffer->data());
  return {std::move(buffer), {data, bytes.size()}, device->is_host() ? nullptr : device};
}

// Both ends of a direction, whose payloads are where `left` says.
class PlacedEnds {
 public:
  PlacedEnds(const BoundarySpec& spec, LeftOnDevice left)
      : encoder_(*MessageEncoder::New(spec, /*support=*/nullptr, left)),
        decoder_(*MessageDecoder::New(spec, /*support=*/nullptr)) {}

  absl::StatusOr<MessageEncoder::Encoded> Encode(const std::vector<float>& values, uint64_t step,
                                                 bool compress = true) {
    outgoing_.key = {PHASE_TRAIN, DIRECTION_ACTIVATION, 0, 1, step, 0};
    outgoing_.compress = compress;
    outgoing_.rows = rows_;
    outgoing_.x = *Tensor::Allocate(EmulatedDevice(), DType::kF32, {kSamples, kFeatures});
    EXPECT_TRUE(EmulatedDevice()
                    ->CopyFromHost(outgoing_.x.data(), values.data(), outgoing_.x.bytes())
                    .ok());
    return encoder_->Encode(outgoing_);
  }
  double RelativeError(const MessageEncoder::Encoded& encoded) {
    return encoder_->Measure(outgoing_, encoded)->received.relative_error;
  }
  absl::StatusOr<std::vector<uint8_t>> Decode(const Message& message) {
    EXPECT_TRUE(decoder_->Check(message).ok());
    const absl::StatusOr<Tensor> decoded = decoder_->Decode(message, rows_.get());
    if (!decoded.ok()) return decoded.status();
    return BytesOf(*decoded);
  }

 private:
  const std::unique_ptr<MessageEncoder> encoder_;
  const std::unique_ptr<MessageDecoder> decoder_;
  // An epoch of one batch after the other.
  const std::shared_ptr<const EpochRows> rows_ = std::make_shared<const EpochRows>(
      EpochSpec{{ShuffleKind::kSamples, 0, kSamples}, 1, /*epoch=*/1, /*samples=*/8 * kSamples},
      /*needs_ids=*/false);
  MessageEncoder::Outgoing outgoing_;
};

std::vector<float> RandomFeatures(uint64_t seed) {
  RandomStream random(RandomKey(seed, "features"));
  std::vector<float> values(kSamples * kFeatures);
  for (float& value : values) value = random.NextFloat() - 0.5f;
  return values;
}

// Expects messages of both directions, one of them exact, to be equal but for the payload's place.
void ExpectEqualSteps(const BoundarySpec& spec) {
  PlacedEnds host(spec, LeftOnDevice::kNone), device(spec, LeftOnDevice::kAll);
  for (uint64_t step = 1; step <= 4; ++step) {
    const std::vector<float> values = RandomFeatures(step);
    const bool compress = step != 3;
    const auto expected = host.Encode(values, step, compress);
    const auto met = device.Encode(values, step, compress);
    ASSERT_TRUE(expected.ok() && met.ok()) << expected.status() << met.status();
    EXPECT_EQ(expected->message.payload.device, nullptr);
    ASSERT_EQ(met->message.payload.device, EmulatedDevice());
    EXPECT_TRUE(PayloadBytesOf(met->message) == PayloadBytesOf(expected->message)) << step;
    EXPECT_EQ(met->message.codec, expected->message.codec);
    EXPECT_EQ(met->message.state_digest, expected->message.state_digest);
    EXPECT_EQ(device.RelativeError(*met), host.RelativeError(*expected));
    EXPECT_TRUE(*device.Decode(met->message) == *host.Decode(expected->message)) << step;
  }
}

TEST(PayloadOnDeviceTest, HasTheBytesTensorsAndLossesOfOneOnTheHost) {
  for (const CodecKind kind : {CodecKind::kUniform, CodecKind::kTopK, CodecKind::kEcsq}) {
    for (const FeedbackKind feedback :
         {FeedbackKind::kNone, FeedbackKind::kEf, FeedbackKind::kEf21}) {
      const BoundarySpec spec = SpecOnDevice(kind, feedback);
      SCOPED_TRACE(spec.codec.ToString() + " " + Name(feedback));
      ExpectEqualSteps(spec);
    }
  }
}

TEST(PayloadOnDeviceTest, StaysOnTheHostWhereItIsCodedThereOrShort) {
  BoundarySpec lossless = SpecOnDevice(CodecKind::kTopK, FeedbackKind::kNone);
  lossless.codec.lossless = Lossless::kEntropy;
  BoundarySpec coarse = SpecOnDevice(CodecKind::kUniform, FeedbackKind::kNone);
  coarse.codec.bits = 1;
  for (const BoundarySpec& spec :
       {lossless, coarse, SpecOnDevice(CodecKind::kTopK, FeedbackKind::kSplit)}) {
    PlacedEnds ends(spec, LeftOnDevice::kAll);
    const auto encoded = ends.Encode(RandomFeatures(1), /*step=*/1);
    ASSERT_TRUE(encoded.ok()) << encoded.status();
    EXPECT_EQ(encoded->message.payload.device, nullptr) << spec.codec.ToString();
    Message message = encoded->message;
    const std::vector<uint8_t> decoded = *ends.Decode(message);
    // The link may have gathered it on the device nevertheless.
    message.payload = MovedTo(EmulatedDevice(), PayloadBytesOf(encoded->message));
    EXPECT_TRUE(*ends.Decode(message) == decoded) << spec.codec.ToString();
  }
  PlacedEnds ends(SpecOnDevice(CodecKind::kTopK, FeedbackKind::kNone), LeftOnDevice::kExact);
  EXPECT_EQ(ends.Encode(RandomFeatures(1), /*step=*/1)->message.payload.device, nullptr);
}

TEST(PayloadOnDeviceTest, AMessageWithNanIsSentExactlyOrRefusedInTheSameWords) {
  std::vector<float> values = RandomFeatures(1);
  values[777] = std::numeric_limits<float>::quiet_NaN();
  BoundarySpec spec = SpecOnDevice(CodecKind::kTopK, FeedbackKind::kNone);
  spec.on_nonfinite = OnNonfinite::kPass;
  PlacedEnds ends(spec, LeftOnDevice::kAll);
  const auto encoded = ends.Encode(values, /*step=*/1);
  ASSERT_TRUE(encoded.ok()) << encoded.status();
  EXPECT_TRUE(encoded->message.codec.is_exact());
  EXPECT_EQ(encoded->message.payload.device, EmulatedDevice());
  const auto* const bytes = reinterpret_cast<const uint8_t*>(values.data());
  EXPECT_TRUE(*ends.Decode(encoded->message) ==
              std::vector<uint8_t>(bytes, bytes + values.size() * sizeof(float)));

  spec.on_nonfinite = OnNonfinite::kError;
  const absl::Status expected = PlacedEnds(spec, LeftOnDevice::kNone).Encode(values, 1).status();
  const absl::Status met = PlacedEnds(spec, LeftOnDevice::kAll).Encode(values, 1).status();
  EXPECT_TRUE(absl::IsOutOfRange(expected)) << expected;
  EXPECT_EQ(met, expected);
}

TEST(PayloadOnDeviceTest, AMalformedOneIsRefusedInTheSameWords) {
  for (const CodecKind kind : {CodecKind::kUniform, CodecKind::kTopK, CodecKind::kEcsq}) {
    PlacedEnds ends(SpecOnDevice(kind, FeedbackKind::kNone), LeftOnDevice::kAll);
    const auto encoded = ends.Encode(RandomFeatures(1), /*step=*/1);
    ASSERT_TRUE(encoded.ok()) << encoded.status();
    std::vector<uint8_t> damaged = PayloadBytesOf(encoded->message);
    damaged[0] = damaged[1] = damaged[2] = damaged[3] = 0xFF;
    for (const auto& bytes : {damaged, {damaged.begin(), damaged.end() - 1}}) {
      Message message = encoded->message;
      message.payload = MovedTo(CpuDevice(), bytes);
      const absl::Status expected = ends.Decode(message).status();
      message.payload = MovedTo(EmulatedDevice(), bytes);
      EXPECT_TRUE(absl::IsInvalidArgument(expected)) << Name(kind) << ": " << expected;
      EXPECT_EQ(ends.Decode(message).status(), expected);
    }
  }
}

}  // namespace
}  // namespace thinwire
