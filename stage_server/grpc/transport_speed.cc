#include "stage_server/grpc/transport_speed.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/random.h"
#include "base/secret.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "grpcpp/grpcpp.h"
#include "security/security.h"
#include "stage_server/grpc/boundary_service.h"
#include "stage_server/grpc/dial.h"
#include "wire/link.h"

namespace thinwire {
namespace {

constexpr size_t kLargeBytes = size_t{1} << 20;
constexpr int kSmallMessages = 200, kLargeMessages = 40;
constexpr int kRounds = 3;
constexpr absl::Duration kPatience = absl::Seconds(20);

// Of the whole process, in seconds.
double ProcessorSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

LinkOptions End(const std::string& secret, Direction receives) {
  LinkOptions options;
  options.name = "that is measured";
  options.peer = "this process";
  options.secret = secret;
  options.receives = receives;
  options.max_payload_bytes = kLargeBytes;
  return options;
}

Message MessageOf(Direction direction, size_t bytes) {
  const auto words = std::make_shared<std::vector<uint64_t>>(bytes / sizeof(uint64_t));
  for (size_t i = 0; i < words->size(); ++i) (*words)[i] = RandomKey(1, i);
  Message message;
  message.key = {PHASE_TRAIN, direction, /*cut=*/0, /*epoch=*/1, /*step=*/1, /*microbatch=*/0};
  message.dtype = DType::kF32;
  message.shape = Shape{static_cast<int64_t>(bytes / sizeof(float))};
  message.payload = {words, {reinterpret_cast<const uint8_t*>(words->data()), bytes}};
  return message;
}

// Two ends of a link. The one that dials asks, the other answers each message with an empty one.
class Pair {
 public:
  static absl::StatusOr<std::unique_ptr<Pair>> Connect() {
    std::unique_ptr<Pair> pair(new Pair);
    RETURN_IF_ERROR(pair->Open());
    return pair;
  }

  ~Pair() {
    asking_.reset();  // which ends the other's Receive
    if (answerer_.joinable()) answerer_.join();
    answering_.reset();
    if (server_ != nullptr) server_->Shutdown();
  }

  // Processor seconds of an exchange, in the mean: each of the messages, and an answer to it.
  absl::StatusOr<double> Exchange(const std::vector<Message>& messages) {
    const double before = ProcessorSeconds();
    for (const Message& message : messages) {
      asking_->Send(message);
      RETURN_IF_ERROR(asking_->Receive(deadline_).status());
    }
    return (ProcessorSeconds() - before) / static_cast<double>(messages.size());
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
    ASSIGN_OR_RETURN(answering_, service_->Listen(End(secret, DIRECTION_ACTIVATION)));
    ASSIGN_OR_RETURN(asking_, DialLink(absl::StrCat("127.0.0.1:", port),
                                       End(secret, DIRECTION_GRADIENT), Security(), deadline_));
    answerer_ = std::thread([this] {
      const Message answer = MessageOf(DIRECTION_GRADIENT, 0);
      while (answering_->Receive(deadline_).ok()) answering_->Send(answer);
    });
    return absl::OkStatus();
  }

  std::unique_ptr<BoundaryService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Link> answering_, asking_;
  std::thread answerer_;
  const SteadyTime deadline_;
};

}  // namespace

// The least of some rounds is the least disturbed.
absl::StatusOr<TransportCost> MeasureTransport() {
  ASSIGN_OR_RETURN(const auto pair, Pair::Connect());
  const std::vector<Message> none(kSmallMessages, MessageOf(DIRECTION_ACTIVATION, 0));
  // Together more than a cache holds, as the tensors of a step are.
  std::vector<Message> all;
  for (int i = 0; i < kLargeMessages; ++i) {
    all.push_back(MessageOf(DIRECTION_ACTIVATION, kLargeBytes));
  }
  RETURN_IF_ERROR(pair->Exchange(all).status());  // memory and windows grow
  double small = std::numeric_limits<double>::infinity(), large = small;
  for (int round = 0; round < kRounds; ++round) {
    ASSIGN_OR_RETURN(const double empty, pair->Exchange(none));
    ASSIGN_OR_RETURN(const double full, pair->Exchange(all));
    small = std::min(small, empty);
    large = std::min(large, full);
  }
  TransportCost cost;
  cost.seconds_per_message = small / 4;  // both ends of two messages
  cost.seconds_per_byte = std::max(0., large - small) / 2 / kLargeBytes;
  return cost;
}

}  // namespace thinwire
