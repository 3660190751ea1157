#include "stage_server/transport_speed.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/random.h"
#include "base/secret.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "base/stopwatch.h"
#include "compress/cpu/kernels.h"
#include "grpcpp/grpcpp.h"
#include "security/security.h"
#include "stage_server/boundary/receiver.h"
#include "stage_server/boundary/sender.h"
#include "stage_server/grpc/boundary_service.h"
#include "stage_server/grpc/dial.h"
#include "tensor/cpu/device.h"
#include "tensor/tensor.h"
#include "wire/link.h"

namespace thinwire {
namespace {

constexpr int64_t kLargeFloats = int64_t{1} << 18;
constexpr int kSmallMessages = 60, kLargeMessages = 30;
constexpr int kRounds = 3;
// Pause before each message, so that the load takes the caches again.
constexpr std::chrono::milliseconds kPause(1);
constexpr absl::Duration kPatience = absl::Seconds(20);

// Returns the processor time of all threads of the process so far, including those that have ended.
double ProcessSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Runs a thread on each core that computes until it is stopped, as stages do beside their messages.
// So no core is idle when a message comes, and none keeps its caches from the last message.
class Load {
 public:
  Load() : threads_(std::max(1u, std::thread::hardware_concurrency())) {
    for (std::thread& thread : threads_) thread = std::thread([this] { Run(); });
  }
  ~Load() { Stop(); }

  // Stops the threads and returns the seconds of processor time that they used.
  double Stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    return seconds_;
  }

 private:
  // Two such vectors, 2 MiB, fill a core's cache.
  static constexpr size_t kFloats = size_t{1} << 18;

  void Run() {
    // With a real-time priority these threads would never give way to messages.
    constexpr sched_param kNone = {};
    sched_setscheduler(/*this thread*/ 0, SCHED_OTHER, &kNone);
    std::vector<float> x(kFloats, 1), y(kFloats, 1);
    while (!stop_) {
      for (size_t i = 0; i < kFloats; ++i) y[i] = x[i] - 0.5F * y[i];
    }
    const double mine = ThreadCpuSeconds();
    const std::lock_guard<std::mutex> lock(mutex_);
    seconds_ += mine;
  }

  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  double seconds_ = 0;
  std::vector<std::thread> threads_;
};

// Returns a boundary whose samples are single numbers, so that a message may have any size.
BoundarySpec Numbers(Direction direction) {
  BoundarySpec spec;
  spec.name = "that is measured";
  spec.peer = "this process";
  spec.direction = direction;
  spec.sample = {1, 1};
  spec.max_batch = kLargeFloats;
  spec.capacity = 2;
  spec.device = CpuDevice();
  spec.kernels = CpuCodecKernels();
  return spec;
}

absl::StatusOr<LinkOptions> End(const std::string& secret, Direction receives) {
  LinkOptions options;
  options.name = "that is measured";
  options.peer = "this process";
  options.secret = secret;
  options.receives = receives;
  ASSIGN_OR_RETURN(options.max_payload_bytes, MaxPayloadBytes(Numbers(receives)));
  return options;
}

// The two ends of the boundary, as neighbouring stages have them.
struct Ends {
  std::unique_ptr<Link> link;
  std::unique_ptr<BoundarySender> sender;
  std::unique_ptr<BoundaryReceiver> receiver;

  absl::Status Open(std::unique_ptr<Link> opened, Direction sends, Direction receives) {
    link = std::move(opened);
    ASSIGN_OR_RETURN(sender, BoundarySender::New(Numbers(sends), link.get(), Worker::kOwnThread,
                                                 /*support=*/nullptr));
    ASSIGN_OR_RETURN(receiver, BoundaryReceiver::New(Numbers(receives), link.get(),
                                                     Worker::kOwnThread, /*support=*/nullptr));
    return absl::OkStatus();
  }
  void Stop() {
    if (receiver != nullptr) receiver->Stop(absl::CancelledError("it is measured"));
  }
  void Close() {
    receiver.reset();
    sender.reset();
    link.reset();
  }
};

// Returns the numbers of the message of `step`: small messages alternate with large ones.
int64_t NumbersIn(uint64_t step) {
  const uint64_t place = (step - 1) % (kSmallMessages + kLargeMessages);
  return place < kSmallMessages ? 1 : kLargeFloats;
}

// Returns a key of the phase whose messages are answered by empty ones.
MessageKey KeyOf(uint64_t step) {
  return {PHASE_EVALUATE_UNCOMPRESSED,
          DIRECTION_UNSPECIFIED,
          /*cut=*/0,
          /*epoch=*/1,
          step,
          /*microbatch=*/0};
}

// Exchanges messages between two ends joined by a link. The end that dials sends numbers; the other
// answers each message with an empty one.
class Pair {
 public:
  static absl::StatusOr<std::unique_ptr<Pair>> Connect() {
    std::unique_ptr<Pair> pair(new Pair);
    RETURN_IF_ERROR(pair->Open());
    return pair;
  }

  ~Pair() {
    for (Ends* ends : {&asking_, &answering_}) ends->Stop();
    if (answerer_.joinable()) answerer_.join();
    for (Ends* ends : {&asking_, &answering_}) ends->Close();
    if (server_ != nullptr) server_->Shutdown();
  }

  // Exchanges `messages` messages and their answers. Returns the mean processor time of one
  // exchange, in seconds.
  absl::StatusOr<double> Exchange(int messages) {
    ASSIGN_OR_RETURN(const Tensor tensor,
                     Tensor::Allocate(CpuDevice(), DType::kF32, {NumbersIn(asked_ + 1), 1}));
    RandomStream random(RandomKey(1, "transport"));
    for (float& number : tensor.floats()) number = random.NextFloat();
    Load load;
    const double before = ProcessSeconds();
    for (int i = 0; i < messages; ++i) {
      std::this_thread::sleep_for(kPause);
      const MessageKey key = KeyOf(++asked_);
      RETURN_IF_ERROR(asking_.sender->Send(key, kDigest, /*compress=*/false, tensor));
      RETURN_IF_ERROR(asking_.receiver->ReceiveAcknowledgement(key, deadline_));
    }
    const double of_load = load.Stop();
    return (ProcessSeconds() - before - of_load) / messages;
  }

 private:
  Pair() : service_(NewBoundaryService()), deadline_(SteadyTime::Now() + kPatience) {}

  absl::Status Open() {
    const std::string secret = NewSecret();
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    service_->Configure("127.0.0.1:0", &builder);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return absl::UnavailableError("no port at 127.0.0.1 to listen at");
    constexpr Direction kForth = DIRECTION_ACTIVATION, kBack = DIRECTION_GRADIENT;
    ASSIGN_OR_RETURN(const LinkOptions answering, End(secret, kForth));
    ASSIGN_OR_RETURN(const LinkOptions asking, End(secret, kBack));
    ASSIGN_OR_RETURN(auto listening, service_->Listen(answering));
    RETURN_IF_ERROR(answering_.Open(std::move(listening), kBack, kForth));
    ASSIGN_OR_RETURN(auto dialled,
                     DialLink(absl::StrCat("127.0.0.1:", port), asking, Security(), deadline_));
    RETURN_IF_ERROR(asking_.Open(std::move(dialled), kForth, kBack));
    answerer_ = std::thread([this] { Answer(); });
    return absl::OkStatus();
  }

  void Answer() {
    BoundaryReceiver::Expected expected;
    expected.sample_digest = kDigest;
    for (uint64_t step = 1;; ++step) {
      expected.key = KeyOf(step);
      expected.batch = NumbersIn(step);
      if (!answering_.receiver->Receive(expected, deadline_).ok()) return;
      if (!answering_.sender->SendAcknowledgement(KeyOf(step)).ok()) return;
    }
  }

  static constexpr uint64_t kDigest = 1;

  std::unique_ptr<BoundaryService> service_;
  std::unique_ptr<grpc::Server> server_;
  Ends answering_, asking_;
  std::thread answerer_;
  const SteadyTime deadline_;
  uint64_t asked_ = 0;
};

}  // namespace

// Takes the smallest of several rounds, which was disturbed least.
absl::StatusOr<TransportCost> MeasureTransport() {
  ASSIGN_OR_RETURN(const auto pair, Pair::Connect());
  double small = std::numeric_limits<double>::infinity(), large = small;
  for (int round = 0; round <= kRounds; ++round) {
    ASSIGN_OR_RETURN(const double empty, pair->Exchange(kSmallMessages));
    ASSIGN_OR_RETURN(const double full, pair->Exchange(kLargeMessages));
    if (round == 0) continue;  // its memory and windows still grow
    small = std::min(small, empty);
    large = std::min(large, full);
  }
  TransportCost cost;
  cost.seconds_per_message = small / 4;  // two messages with two ends each
  cost.seconds_per_byte = std::max(0., large - small) / 2 / (kLargeFloats * sizeof(float));
  return cost;
}

}  // namespace thinwire
