// Measures how long an exact message takes from the memory of one process' GPU to that of
// another's, by each way that a link between processes of a host has. Prints a line of JSON for
// each.
//
// Two processes send a message to and fro. A time is half of such a round trip: it begins with the
// call of Send and ends with a message that is whole, checked and in the receiver's GPU.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "backend/load.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "tensor/tensor.h"
#include "transport/dial.h"
#include "transport/link_testing.h"

namespace thinwire {
namespace {

struct BenchOptions {
  std::string device = "cuda:0", peer_device = "cuda:0", cuda_plugin;
  uint64_t bytes = 16 << 20;
  int rounds = 200, warmup = 20;
};

const char* NameOf(Way way) {
  switch (way) {
    case Way::kMemory:
      return "memory";
    case Way::kDeviceSlots:
      return "device_slots";
    case Way::kDeviceCopies:
      return "device_copies";
    case Way::kHostCopies:
      return "host_copies";
    case Way::kSocket:
      return "socket";
  }
  return "unknown";
}

constexpr Way kWays[] = {Way::kDeviceSlots, Way::kDeviceCopies, Way::kHostCopies, Way::kSocket};

// A device's copies as far as a way has them.
class CopiesOf final : public DirectCopies {
 public:
  CopiesOf(Way way, DirectCopies* all) : way_(way), all_(all) {}

  Error LockPages(void* memory, size_t bytes) override {
    if (way_ <= Way::kDeviceCopies) return all_->LockPages(memory, bytes);
    return MakeError(absl::StatusCode::kUnavailable, "not of this way");
  }
  void UnlockPages(void* memory) override { all_->UnlockPages(memory); }
  Error NewQueue(CopyQueue** queue) override { return all_->NewQueue(queue); }
  PeerMemory* peer_memory() override {
    return way_ == Way::kDeviceSlots ? all_->peer_memory() : nullptr;
  }

 private:
  const Way way_;
  DirectCopies* const all_;
};

// One process' end of the links.
class End {
 public:
  static absl::StatusOr<std::unique_ptr<End>> Open(const BenchOptions& bench,
                                                   const std::string& device) {
    ASSIGN_OR_RETURN(const OpenedDevice opened, OpenDevice(device, bench.cuda_plugin));
    if (opened.copies == nullptr) {
      return absl::InvalidArgumentError(device + " copies nothing itself, want a GPU");
    }
    ASSIGN_OR_RETURN(auto buffer, Buffer::Allocate(opened.device, bench.bytes));
    RETURN_IF_ERROR(ToStatus(opened.device->Finish()));
    return std::unique_ptr<End>(new End(opened, std::move(buffer), bench.bytes));
  }

  LinkOptions OptionsOf(LinkOptions options, Way way) {
    copies_.push_back(std::make_unique<CopiesOf>(way, opened_.copies));
    options.max_payload_bytes = bytes_;
    options.device = opened_.device;
    options.host = opened_.device->host();
    options.copies = copies_.back().get();
    if (way <= Way::kDeviceCopies) {
      options.on_note = [](const std::string& note) {
        std::fprintf(stderr, "message_bench: %s\n", note.c_str());
      };
    }
    return options;
  }

  void Send(Direction direction, Link* link) const {
    Message message = TestMessage(direction, /*payload_bytes=*/0);
    message.codec = CodecSpec();
    message.payload = {buffer_,
                       {static_cast<const uint8_t*>(buffer_->data()), static_cast<size_t>(bytes_)},
                       opened_.device};
    link->Send(std::move(message));
  }
  // Receives a message and brings it to the device if it is not there yet.
  absl::Status Receive(Link* link) const {
    ASSIGN_OR_RETURN(const Message message, link->Receive(TestDeadline()));
    if (message.payload.device != nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(const auto copy, Buffer::Allocate(opened_.device, bytes_));
    return ToStatus(opened_.device->CopyFromHost(copy->data(), message.payload.bytes.data(),
                                                 message.payload.bytes.size()));
  }

 private:
  End(const OpenedDevice& opened, std::shared_ptr<Buffer> buffer, uint64_t bytes)
      : opened_(opened), buffer_(std::move(buffer)), bytes_(bytes) {}

  const OpenedDevice opened_;
  const std::shared_ptr<Buffer> buffer_;
  const uint64_t bytes_;
  std::vector<std::unique_ptr<CopiesOf>> copies_;
};

// Ends of a pipe through which the listening process says where it listens, line by line.
struct Addresses {
  FILE* in = nullptr;
  FILE* out = nullptr;

  void Say(const std::string& address) const {
    std::fprintf(out, "%s\n", address.c_str());
    std::fflush(out);
  }
  std::string Hear() const {
    char line[256] = {};
    if (std::fgets(line, sizeof(line), in) == nullptr) return "";
    return std::string(line, std::strcspn(line, "\n"));
  }
};

// Answers every message of every link until the peer ends it.
absl::Status Answer(const BenchOptions& bench, const Addresses& addresses) {
  ASSIGN_OR_RETURN(const auto end, End::Open(bench, bench.peer_device));
  for (const Way way : kWays) {
    TestServer server(way == Way::kSocket ? TestServer::Socket::kTcp : TestServer::Socket::kUnix);
    ASSIGN_OR_RETURN(const auto link,
                     server.service()->Listen(end->OptionsOf(DownstreamOptions(), way)));
    addresses.Say(server.address());
    for (int i = 0; i < bench.warmup + bench.rounds; ++i) {
      RETURN_IF_ERROR(end->Receive(link.get()));
      end->Send(DIRECTION_GRADIENT, link.get());
    }
    (void)link->Receive(TestDeadline());  // until the peer has the last answer and ends
  }
  return absl::OkStatus();
}

absl::Status Measure(const BenchOptions& bench, const Addresses& addresses) {
  ASSIGN_OR_RETURN(const auto end, End::Open(bench, bench.device));
  for (const Way way : kWays) {
    const std::string address = addresses.Hear();
    if (address.empty()) return absl::UnavailableError("the other process has ended");
    ASSIGN_OR_RETURN(const auto link, DialLink(address, end->OptionsOf(UpstreamOptions(), way),
                                               Security(), TestDeadline()));
    std::vector<double> seconds;
    Way went = Way::kMemory;
    for (int i = 0; i < bench.warmup + bench.rounds; ++i) {
      const SteadyTime start = SteadyTime::Now();
      end->Send(DIRECTION_ACTIVATION, link.get());
      went = std::max(went, link->last_way());
      RETURN_IF_ERROR(end->Receive(link.get()));
      if (i >= bench.warmup) {
        seconds.push_back(absl::ToDoubleSeconds(SteadyTime::Now() - start) / 2);
      }
    }
    std::sort(seconds.begin(), seconds.end());
    const nlohmann::json line = {{"way", NameOf(way)},
                                 {"went", NameOf(went)},
                                 {"bytes", bench.bytes},
                                 {"median_seconds", seconds[seconds.size() / 2]},
                                 {"least_seconds", seconds.front()},
                                 {"seconds_of_9_in_10", seconds[seconds.size() * 9 / 10]}};
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

int Exit(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "message_bench: %s\n", std::string(status.message()).c_str());
  return 1;
}

// The processes part before either has threads or a GPU.
int Run(const BenchOptions& bench) {
  int ends[2];
  if (pipe(ends) != 0) return Exit(absl::InternalError("no pipe"));
  const pid_t child = fork();
  if (child < 0) return Exit(absl::InternalError("no second process"));
  if (child == 0) {
    close(ends[0]);
    return Exit(Answer(bench, {nullptr, fdopen(ends[1], "w")}));
  }
  close(ends[1]);
  const int measured = Exit(Measure(bench, {fdopen(ends[0], "r"), nullptr}));
  int status = 0;
  waitpid(child, &status, 0);
  return measured != 0 || status == 0 ? measured : 1;
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  thinwire::BenchOptions bench;
  CLI::App app("Times an exact message between two processes' GPUs, by each way.");
  app.add_option("--device", bench.device, "of the process that measures")->capture_default_str();
  app.add_option("--peer_device", bench.peer_device, "of the other")->capture_default_str();
  app.add_option("--cuda_plugin", bench.cuda_plugin, "default: where the stage server looks");
  app.add_option("--bytes", bench.bytes, "of the message")->capture_default_str();
  app.add_option("--rounds", bench.rounds)->check(CLI::Range(1, 1'000'000))->capture_default_str();
  app.add_option("--warmup", bench.warmup)->check(CLI::Range(0, 1'000'000))->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return thinwire::Run(bench);
}
