#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/secret.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "base/stopwatch.h"
#include "grpcpp/grpcpp.h"
#include "security/security.h"
#include "transport/boundary_service.h"
#include "transport/dial.h"
#include "transport/speed.h"
#include "wire/link.h"

namespace thinwire {
namespace {

constexpr int64_t kLargeFloats = int64_t{1} << 18;
constexpr int kSmallMessages = 60, kLargeMessages = 30;
constexpr int kRounds = 3;
constexpr char kPeer[] = "this process";
// Before each message, so that the load has the caches again.
constexpr std::chrono::milliseconds kPause(1);
constexpr absl::Duration kPatience = absl::Seconds(20);

// Returns the processor's seconds for all of the process's threads so far, those that have ended
// too.
double ProcessSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// A thread for each core that computes until it is stopped, as stages do beside their messages: no
// core is idle when a message comes, and none has its caches as the last message left them.
class Load {
 public:
  Load() : threads_(std::max(1u, std::thread::hardware_concurrency())) {
    const double before = ThreadCpuSeconds();
    for (std::thread& thread : threads_) thread = std::thread([this] { Run(); });
    const std::lock_guard<std::mutex> lock(mutex_);
    seconds_ += ThreadCpuSeconds() - before;
  }
  ~Load() { Stop(); }

  // Returns what the processor has done for them since before they were started, seconds.
  double Stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    return seconds_;
  }

 private:
  static constexpr size_t kFloats = size_t{1} << 18;  // of two vectors: 2 MiB, as a core's cache

  void Run() {
    // Where the process has a real-time priority, these threads would never give way to messages.
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

// Messages that one thread hands to another, in order. Any thread.
class Mailbox {
 public:
  void Put(Message message) {
    const std::lock_guard<std::mutex> lock(mutex_);
    messages_.push_back(std::move(message));
    changed_.notify_one();
  }
  // Gives `reason` to whoever takes from now on.
  void Close(absl::Status reason) {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = std::move(reason);
    changed_.notify_one();
  }
  absl::StatusOr<Message> Take(SteadyTime deadline) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_until(lock, deadline.chrono(),
                        [this] { return !messages_.empty() || !closed_.ok(); });
    RETURN_IF_ERROR(closed_);
    if (messages_.empty()) {
      return absl::DeadlineExceededError(
          absl::StrCat("transport between two ends in this process: no message within ",
                       absl::FormatDuration(kPatience), " of the start"));
    }
    Message message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Message> messages_ ABSL_GUARDED_BY(mutex_);
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
};

// A link's end with the threads that a stage has for its codecs, between the executor and the link.
class End {
 public:
  explicit End(std::unique_ptr<Link> link)
      : link_(std::move(link)),
        encoder_([this] { SendAll(); }),
        decoder_([this] { ReceiveAll(); }) {}

  ~End() {
    Stop();
    encoder_.join();
    decoder_.join();
  }

  void Send(Message message) { outgoing_.Put(std::move(message)); }
  absl::StatusOr<Message> Receive(SteadyTime deadline) { return incoming_.Take(deadline); }

  // Ends what both threads, and who receives, wait for.
  void Stop() {
    const absl::Status reason = absl::CancelledError("it is measured");
    outgoing_.Close(reason);
    link_->Close(reason);
  }

 private:
  void SendAll() {
    for (;;) {
      absl::StatusOr<Message> message = outgoing_.Take(SteadyTime::Never());
      if (!message.ok()) return;
      link_->Send(*std::move(message));
    }
  }
  void ReceiveAll() {
    for (;;) {
      absl::StatusOr<Message> message = link_->Receive(SteadyTime::Never());
      if (!message.ok()) return incoming_.Close(message.status());
      incoming_.Put(*std::move(message));
    }
  }

  const std::unique_ptr<Link> link_;
  Mailbox outgoing_, incoming_;
  std::thread encoder_, decoder_;
};

// Returns the floats of the message of `step`: small messages alternate with large ones.
int64_t FloatsIn(uint64_t step) {
  const uint64_t place = (step - 1) % (kSmallMessages + kLargeMessages);
  return place < kSmallMessages ? 1 : kLargeFloats;
}

// Returns a message of the phase whose messages are answered by empty ones.
Message MessageOf(uint64_t step, Direction direction, const Payload& payload) {
  Message message;
  message.key = {PHASE_EVALUATE_UNCOMPRESSED,
                 direction,
                 kNoCut,
                 /*epoch=*/1,
                 step,
                 /*microbatch=*/0};
  message.dtype = DType::kF32;
  const auto floats = static_cast<int64_t>(payload.bytes.size() / sizeof(float));
  message.shape = floats == 0 ? Shape{0} : Shape{floats, 1};
  message.payload = payload;
  return message;
}

// Between two ends that a link joins. The one that dials sends numbers, the other answers each
// message with an empty one.
class Pair {
 public:
  static absl::StatusOr<std::unique_ptr<Pair>> Connect() {
    std::unique_ptr<Pair> pair(new Pair);
    RETURN_IF_ERROR(pair->Open());
    return pair;
  }

  ~Pair() {
    if (answering_ != nullptr) answering_->Stop();
    if (answerer_.joinable()) answerer_.join();
    asking_.reset();
    answering_.reset();
    if (server_ != nullptr) server_->Shutdown();
  }

  // The next exchanges, of a message and the answer to it each: what one takes of the processor in
  // the mean, seconds.
  absl::StatusOr<double> Exchange(int messages) {
    const Payload payload = RandomPayload(FloatsIn(asked_ + 1));
    const double before = ProcessSeconds();  // before the load starts: all of it is taken off
    Load load;
    for (int i = 0; i < messages; ++i) {
      std::this_thread::sleep_for(kPause);
      asking_->Send(MessageOf(++asked_, kForth, payload));
      RETURN_IF_ERROR(asking_->Receive(deadline_).status());
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
    ASSIGN_OR_RETURN(auto listening,
                     service_->Listen(MeasuredLink(/*generation=*/0, secret, kPeer, kForth)));
    answering_ = std::make_unique<End>(std::move(listening));
    ASSIGN_OR_RETURN(auto dialled, DialLink(absl::StrCat("127.0.0.1:", port),
                                            MeasuredLink(/*generation=*/0, secret, kPeer, kBack),
                                            Security(), deadline_));
    asking_ = std::make_unique<End>(std::move(dialled));
    answerer_ = std::thread([this] { Answer(); });
    return absl::OkStatus();
  }

  void Answer() {
    for (uint64_t step = 1; answering_->Receive(deadline_).ok(); ++step) {
      answering_->Send(MessageOf(step, kBack, Payload()));
    }
  }

  static constexpr Direction kForth = DIRECTION_ACTIVATION, kBack = DIRECTION_GRADIENT;

  std::unique_ptr<BoundaryService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<End> answering_, asking_;
  std::thread answerer_;
  const SteadyTime deadline_;
  uint64_t asked_ = 0;
};

}  // namespace

// The least of some rounds is the least disturbed.
absl::StatusOr<TransportCost> MeasureTransport() {
  ASSIGN_OR_RETURN(const auto pair, Pair::Connect());
  double small = std::numeric_limits<double>::infinity(), large = small;
  for (int round = 0; round <= kRounds; ++round) {
    ASSIGN_OR_RETURN(const double empty, pair->Exchange(kSmallMessages));
    ASSIGN_OR_RETURN(const double full, pair->Exchange(kLargeMessages));
    if (round == 0) continue;  // memory and windows grow
    small = std::min(small, empty);
    large = std::min(large, full);
  }
  TransportCost cost;
  cost.seconds_per_message = small / 4;  // both ends of two messages
  cost.seconds_per_byte = std::max(0., large - small) / 2 / (kLargeFloats * sizeof(float));
  return cost;
}

}  // namespace thinwire
