#include "stage_server/replicas/averager.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "compress/codecs/far_device_testing.h"
#include "compress/cpu/kernels.h"
#include "nn/cpu/ops.h"
#include "stage_server/replicas/fake_segment_testing.h"
#include "tensor/copy_testing.h"

namespace thinwire {
namespace {

// A link that keeps what is sent.
class KeepingLink final : public Link {
 public:
  explicit KeepingLink(std::vector<Message>* sent) : sent_(sent) {}

  uint64_t Send(Message message) override {
    sent_->push_back(std::move(message));
    return 0;
  }
  absl::StatusOr<Message> Receive(SteadyTime) override {
    return absl::UnavailableError("the peer sends nothing");
  }
  void Close(absl::Status) override {}
  absl::Status Flush(SteadyTime) override { return absl::OkStatus(); }
  uint64_t SocketBytesAcked() const override { return 0; }

 private:
  std::vector<Message>* const sent_;
};

// One of two carriers, of which each adds up all contributions; its tensors are on a device.
class CarrierOnADevice {
 public:
  explicit CarrierOnADevice(FarDevice* far) : segment_({std::vector<float>(kElements, 1)}) {
    Parameter& matrix = segment_.parameters()[0];
    matrix.spec.shape = {64, 64};
    float next = 0;
    for (float& one : matrix.gradient.floats()) one = next++;
    for (Tensor* tensor : {&matrix.value, &matrix.gradient}) {
      *tensor = Tensor(On(far, *tensor).buffer(), DType::kF32, {64, 64});
    }
    ExchangeOptions options;
    options.replicas.count = options.carriers = 2;
    options.replicas.exchange = ReplicaExchange::kGather;
    options.patience = std::make_shared<Patience>();
    options.device = far;
    options.ops = ops_.get();
    options.kernels = CpuCodecKernels();
    averager_ = *ReplicaAverager::New(options, {{0, &segment_}});
    averager_->peers().Attach(1, std::make_unique<KeepingLink>(&sent_));
  }

  // Contributes once and returns what was sent.
  const std::vector<Message>& Contribute() {
    EpochSpec epoch;
    epoch.shuffle = {ShuffleKind::kSamples, 1, 2};
    epoch.microbatches = 2;
    epoch.samples = 2;
    averager_->StartEpoch(epoch);
    const ExchangeStep step{/*epoch=*/1, /*step=*/1, /*compress=*/true, /*with_samples=*/2};
    EXPECT_TRUE(averager_->Contribute(step, /*replica=*/0).ok());
    return sent_;
  }
  const Tensor& gradient() { return segment_.parameters()[0].gradient; }

 private:
  static constexpr size_t kElements = 64 * 64;

  const std::unique_ptr<Ops> ops_ = NewCpuOps(/*threads=*/1);
  FakeSegment segment_;
  std::vector<Message> sent_;
  std::unique_ptr<ReplicaAverager> averager_;
};

TEST(ReplicaAveragerTest, ExactPiecesOfADeviceAreCopiedToTheHostByIt) {
  FarDevice far;
  CarrierOnADevice carrier(&far);
  const std::vector<Message>& sent = carrier.Contribute();
  EXPECT_EQ(far.num_copies_to_host, 1);
  ASSERT_EQ(sent.size(), 1);
  EXPECT_EQ(sent[0].payload.device, nullptr);
  const auto& bytes = sent[0].payload.bytes;
  EXPECT_EQ(std::vector<uint8_t>(bytes.begin(), bytes.end()), BytesOf(carrier.gradient()));
}

}  // namespace
}  // namespace thinwire
