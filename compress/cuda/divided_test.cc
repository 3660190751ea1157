// Tests of outliers and first positions on a GPU: made of kernels that other codecs have.
#include <gtest/gtest.h>

#include <memory>

#include "compress/codecs/division.h"
#include "compress/codecs/new_codec.h"
#include "compress/cuda/twins_testing.h"

namespace thinwire {
namespace {

struct DividedMessage {
  std::vector<uint8_t> payload, decoded;
};

constexpr uint32_t kDocumentRows[] = {1, 8, 13, 20};

// Returns a message with channels of its own and the one after it, and what is decoded of them. In
// the second one documents begin.
std::vector<DividedMessage> DividedMessages(const Twin& twin, const CodecSpec& spec,
                                            const Tensor& host_x) {
  const auto codec = *NewCodec(spec, twin.kernels);
  const Tensor x = On(twin.device, host_x);
  std::shared_ptr<const Carry> sent, received;
  std::vector<DividedMessage> messages;
  for (int i = 0; i < 2; ++i) {
    DividedMessage& message = messages.emplace_back();
    std::shared_ptr<const Carry> next = sent;
    const absl::Span<const uint32_t> documents(kDocumentRows, i == 0 ? 0 : 4);
    message.payload.resize(codec->MaxPayloadBytes(x.shape(), x.dtype()) +
                           MaxDocumentBytes(spec, x.shape(), 4));
    MessageContext context = {kRandomKey, nullptr, sent.get(), &next};
    context.document_rows = documents;
    const auto bytes = codec->Encode(x, context, absl::MakeSpan(message.payload));
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    if (!bytes.ok()) return messages;
    message.payload.resize(*bytes);
    sent = next;
    Tensor y = *Tensor::Allocate(twin.device, x.dtype(), x.shape());
    next = received;
    context = {0, nullptr, received.get(), &next};
    context.document_rows = documents;
    const absl::Status status = codec->Decode(message.payload, context, &y);
    EXPECT_TRUE(status.ok()) << status;
    received = next;
    EXPECT_TRUE(twin.device->Finish().ok());
    message.decoded = BytesOf(y);
  }
  return messages;
}

TEST(DividedTwinsTest, AgreeInEveryPart) {
  const Shape shape = {3, 7, 70};
  std::vector<float> values = NormalValues(shape.elements());
  for (size_t i = 0; i < values.size(); ++i) values[i] *= i % 70 == 64 || i % 70 == 3 ? 500 : 1;
  for (const CodecKind kind : {CodecKind::kUniform, CodecKind::kEcsq}) {
    for (const uint32_t outliers : {0, 2, 70}) {
      for (const FirstPosition first : {FirstPosition::kCoded, FirstPosition::kExact}) {
        for (const DType dtype : kTensorTypes) {
          CodecSpec spec = DefaultSpec(kind);
          spec.scope = Scope::kToken;
          spec.outliers = outliers;
          spec.first_position = first;
          const Tensor x = HostTensor(shape, dtype, values);
          const auto cpu = DividedMessages(CpuTwin(), spec, x);
          const auto gpu = DividedMessages(GpuTwin(), spec, x);
          ASSERT_EQ(gpu.size(), cpu.size());
          for (size_t i = 0; i < cpu.size(); ++i) {
            EXPECT_EQ(gpu[i].payload, cpu[i].payload) << spec.ToString() << ", message " << i;
            EXPECT_EQ(gpu[i].decoded, cpu[i].decoded) << spec.ToString() << ", message " << i;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace thinwire
