// Feeds arbitrary messages of another carrier to the exchange of one step.
//
// The first byte chooses what replicas exchange and how. The rest is records of { size: u8,
// serialised FrameHeader, size: u16, payload }, numbers big-endian. They are sealed here with
// correct checksums, so that the code behind the checks is reached.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compress/cpu/kernels.h"
#include "nn/cpu/ops.h"
#include "stage_server/replicas/averager.h"
#include "stage_server/replicas/fake_segment_testing.h"
#include "tensor/cpu/device.h"
#include "wire/fuzz_testing.h"
#include "wire/inbox.h"

namespace thinwire {
namespace {

// A link to a peer that has sent all that it ever will.
class EndedLink final : public Link {
 public:
  explicit EndedLink(const LinkOptions& options) : inbox_(options) {}

  void Push(const std::string& header_bytes, const std::string& payload) {
    const auto bytes = std::make_shared<const std::string>(Sealed(header_bytes, payload));
    IncomingFrame incoming;
    incoming.parts = {BytesOf(*bytes)};
    incoming.owner = bytes;
    inbox_.Push(incoming).IgnoreError();
  }
  void End() { inbox_.PeerIsGone("has sent all"); }

  uint64_t Send(Message) override { return 0; }
  absl::StatusOr<Message> Receive(SteadyTime deadline) override {
    return inbox_.Receive(deadline, "");
  }
  void Close(absl::Status reason) override { inbox_.Close(reason); }
  absl::Status Flush(SteadyTime) override { return absl::OkStatus(); }
  uint64_t SocketBytesAcked() const override { return 0; }

 private:
  Inbox inbox_;
};

// Returns a segment with a matrix that codecs act on, a bias and running statistics.
std::unique_ptr<FakeSegment> NewSegment() {
  auto segment = std::make_unique<FakeSegment>(std::initializer_list<std::vector<float>>{
      std::vector<float>(4096, 1), std::vector<float>(8, 1), std::vector<float>(4, 1)});
  Parameter& matrix = segment->parameters()[0];
  matrix.spec.shape = {64, 64};
  for (Tensor* tensor : {&matrix.value, &matrix.gradient}) {
    *tensor = Tensor(tensor->buffer(), DType::kF32, {64, 64});
  }
  Parameter& statistics = segment->parameters()[2];
  statistics.spec.role = ParameterSpec::Role::kStatistics;
  statistics.gradient = Tensor();
  return segment;
}

// Returns what replicas exchange in that mode, of two of which the first is carried here.
ExchangeOptions OptionsOf(size_t mode, Ops* ops) {
  ExchangeOptions options;
  options.replicas.count = options.carriers = 2;
  options.patience = std::make_shared<Patience>();
  options.run = 77;
  options.generation = 5;
  options.device = CpuDevice();
  options.ops = ops;
  options.kernels = CpuCodecKernels();
  options.replicas.digest_every = 0;
  if (mode & 1) options.replicas.exchange = ReplicaExchange::kGather;
  DirectionSpec& contributions = options.replicas.contributions;
  contributions.codec.kind = (mode & 2) ? CodecKind::kUniform : CodecKind::kNone;
  if (mode & 4) contributions.feedback.kind = FeedbackKind::kEf21;
  if (mode & 16) {
    contributions.codec.kind = CodecKind::kLowRank;
    contributions.codec.rank = 2;
    contributions.feedback.kind = (mode & 4) ? FeedbackKind::kEf : FeedbackKind::kNone;
  }
  if (mode & 8) options.replicas.average.codec.kind = CodecKind::kBf16;
  return options;
}

LinkOptions LinkTo(const ReplicaAverager& averager) {
  LinkOptions options;
  options.name = kReplicas;
  options.peer = "stage 0 of carrier 1";
  options.run = 77;
  options.generation = 5;
  options.cut = kPeerCuts;
  options.is_among_carriers = true;
  options.receives = DIRECTION_GRADIENT;
  options.max_payload_bytes = averager.max_payload_bytes();
  options.queue_capacity = 2 * static_cast<int>(averager.messages_of_step());
  return options;
}

// Returns the epoch of one step, a sample for each replica.
EpochSpec OneStep() {
  EpochSpec epoch;
  epoch.shuffle = {ShuffleKind::kSamples, 1, 2};
  epoch.microbatches = 2;
  epoch.epoch = 1;
  epoch.samples = 2;
  return epoch;
}

absl::Status Exchange(ReplicaAverager* averager) {
  const ExchangeStep step{/*epoch=*/1, /*step=*/1, /*compress=*/true, /*with_samples=*/2};
  averager->StartEpoch(OneStep());
  RETURN_IF_ERROR(averager->StartStep(step));
  RETURN_IF_ERROR(averager->Contribute(step, /*replica=*/0));
  return averager->Finish(step);
}

}  // namespace
}  // namespace thinwire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace thinwire;
  FuzzInput input(data, size);
  const std::unique_ptr<Ops> ops = NewCpuOps(/*threads=*/1);
  const std::unique_ptr<FakeSegment> segment = NewSegment();
  const auto averager =
      ReplicaAverager::New(OptionsOf(input.TakeNumber(1), ops.get()), {{0, segment.get()}});
  if (!averager.ok()) return 0;  // feedback without a codec
  auto link = std::make_unique<EndedLink>(LinkTo(**averager));
  while (!input.empty()) {
    const std::string header = input.Take(input.TakeNumber(1));
    link->Push(header, input.Take(input.TakeNumber(2)));
  }
  link->End();
  (*averager)->peers().Attach(1, std::move(link));
  if (!Exchange(averager->get()).ok()) return 0;
  // What everybody uses is finite.
  for (const Parameter& parameter : segment->parameters()) {
    if (parameter.gradient.empty()) continue;
    for (const float one : parameter.gradient.floats()) {
      if (!std::isfinite(one)) std::abort();
    }
  }
  return 0;
}
