// Everything above the kernels, on a device that is not the host.
#include <gtest/gtest.h>

#include <string>

#include "compress/codecs/far_device_testing.h"
#include "compress/codecs/plugin.h"
#include "compress/feedback/pair_testing.h"
#include "tensor/copy_testing.h"

namespace thinwire {
namespace {

std::vector<CodecSpec> HostCodecs() {
  CodecSpec plugin;
  plugin.kind = CodecKind::kPlugin;
  plugin.plugin = *LoadPlugin("compress/codecs/libfake.so", "{}");
  CodecSpec lossless = TopKOf(0.1);
  lossless.lossless = Lossless::kZstd;
  CodecSpec low_rank;
  low_rank.kind = CodecKind::kLowRank;
  low_rank.rank = 2;
  low_rank.lossless = Lossless::kZstd;
  return {plugin, lossless, low_rank};
}

TEST(FarDeviceTest, CodecsOfHostCodeSendWhatTheySendOnTheHost) {
  const Shape shape = {4, 6, 16};
  const std::vector<float> values = RandomValues(shape.elements(), 1);
  FarDevice far;
  for (const CodecSpec& spec : HostCodecs()) {
    SCOPED_TRACE(spec.ToString());
    for (const Tensor& x : {TensorOf(shape, values), BFloatTensorOf(shape, values)}) {
      const std::vector<uint8_t> payload = *EncodeToBytes(spec, x);
      EXPECT_EQ(*EncodeToBytes(spec, On(&far, x)), payload);
      Tensor y = *Tensor::Allocate(&far, x.dtype(), shape);
      ASSERT_TRUE(CodecOf(spec)->Decode(payload, {}, &y).ok());
      EXPECT_EQ(BytesOf(y), BytesOf(*DecodeFromBytes(spec, payload, shape, x.dtype())));
    }
  }
}

struct Ends {
  Ends(const FeedbackSpec& spec, const Shape& sample, DType dtype, Device* far)
      : near(FeedbackOptionsOf(spec, sample, dtype)), far(near) {
    this->far.device = far;
  }
  FeedbackOptions near, far;
};

void SendBetween(const FeedbackOptions& from, const FeedbackOptions& to, DType dtype) {
  FeedbackPair pair(from);
  pair.receiver = std::move(*FeedbackReceiver::New(to));
  FeedbackPair reference(FeedbackOptionsOf(from.spec, from.sample, dtype));
  const auto codec = CodecOf(UniformOf(4));
  for (uint64_t step = 0; step < 30; ++step) {
    const Rows rows = {step % 3, 7, 4 + step % 2};
    const Shape shape = from.sample.WithBatch(3);
    const std::vector<float> values = RandomValues(shape.elements(), step);
    const Tensor x = dtype == DType::kF32 ? TensorOf(shape, values) : BFloatTensorOf(shape, values);
    FeedbackSender::Outgoing outgoing;
    outgoing.step = step;
    outgoing.compress = step % 10 != 7;
    const auto want = reference.Send(*codec, x, rows, outgoing);
    const auto met = pair.Send(*codec, On(from.device, x), rows, outgoing);
    ASSERT_TRUE(met.ok()) << met.status();
    ASSERT_EQ(BytesOf(*met), BytesOf(*want)) << "step " << step;
    ASSERT_EQ(pair.payload, reference.payload) << "step " << step;
  }
  EXPECT_EQ(StoredRows(pair.sender->state()), StoredRows(reference.sender->state()));
}

TEST(FarDeviceTest, EndsOnUnlikeDevicesKeepEqualState) {
  for (const FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kEf21}) {
    for (const StateStorage store : {StateStorage::kF32, StateStorage::kF16, StateStorage::kQ8}) {
      for (const std::string& dir : {std::string(), testing::TempDir()}) {
        for (const DType dtype : {DType::kF32, DType::kBF16}) {
          FeedbackSpec spec = SpecOf(kind);
          spec.store = store;
          spec.dir = dir;
          spec.digest_every = kind == FeedbackKind::kEf21 ? 1 : 0;
          SCOPED_TRACE(spec.ToString() + dir + " " + Name(dtype));
          FarDevice far;
          const Ends ends(spec, {1, 6, 50}, dtype, &far);
          SendBetween(ends.near, ends.far, dtype);
          SendBetween(ends.far, ends.near, dtype);
        }
      }
    }
  }
}

TEST(FarDeviceTest, RowsInPlaceAreCopiedForDigestsOnly) {
  for (const uint64_t digest_every : {0, 2}) {
    FeedbackSpec spec = SpecOf(FeedbackKind::kEf21);
    spec.digest_every = digest_every;
    FarDevice far;
    FeedbackOptions options = FeedbackOptionsOf(spec, {1, 6, 16});
    options.device = &far;
    FeedbackPair pair(options);
    const Tensor x = On(&far, TensorOf({2, 6, 16}, RandomValues(192, 1)));
    const auto codec = CodecOf(UniformOf(4));
    far.num_copies_from_host = far.num_copies_to_host = 0;
    FeedbackSender::Outgoing outgoing;
    for (outgoing.step = 0; outgoing.step < 4; ++outgoing.step) {
      ASSERT_TRUE(pair.Send(*codec, x, {0, 1}, outgoing).ok());
    }
    // Two digests of two rows at two ends.
    EXPECT_EQ(far.num_copies_to_host, digest_every == 0 ? 0 : 8);
    EXPECT_EQ(far.num_copies_from_host, 0);
  }
}

}  // namespace
}  // namespace thinwire
