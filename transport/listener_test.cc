#include "transport/listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/loopback_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/stage.grpc.pb.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

constexpr int kPatienceMs = 10'000;

// A plain TCP connection of a peer that sends nothing by itself.
class Peer {
 public:
  Peer() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  explicit Peer(const std::string& address) : Peer() { Dial(address); }
  Peer(Peer&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Peer() {
    if (fd_ >= 0) close(fd_);
  }

  void Dial(const std::string& address) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  }
  // Returns whether the server serves: HTTP/2 sends its settings as soon as a connection exists.
  bool IsServed() { return Read() > 0; }
  bool IsClosed() {
    for (;;) {
      const ssize_t bytes = Read();
      if (bytes <= 0) return bytes == 0 || errno == ECONNRESET;
    }
  }
  void Write(const std::string& bytes) {
    (void)send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  // Sends HTTP/2's preface and empty settings.
  void Greet() {
    Write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string("\0\0\0\x04\0\0\0\0\0", 9));
  }
  // Returns whether a ping of HTTP/2 is answered with the same bytes.
  bool IsAnswered() {
    const std::string ping = "pingpong";
    Write(std::string("\0\0\x08\x06\0\0\0\0\0", 9) + ping);
    for (std::string read;;) {
      const ssize_t bytes = Read();
      if (bytes <= 0) return false;
      read.append(bytes_, static_cast<size_t>(bytes));
      if (read.find(ping) != read.npos) return true;
    }
  }
  std::string name() const {
    sockaddr_in own = {};
    socklen_t size = sizeof(own);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &size);
    return absl::StrCat("ipv4:127.0.0.1:", ntohs(own.sin_port));
  }

 private:
  ssize_t Read() {
    pollfd entry = {fd_, POLLIN, 0};
    if (poll(&entry, 1, kPatienceMs) <= 0) {
      errno = ETIMEDOUT;
      return -1;
    }
    return read(fd_, bytes_, sizeof(bytes_));
  }

  int fd_;
  char bytes_[512];  // the last bytes that were read
};

class ListenerTest : public ::testing::Test {
 protected:
  ListenerTest() { EXPECT_NE(mkdtemp(folder_.data()), nullptr); }
  ~ListenerTest() override { std::filesystem::remove_all(folder_); }
  void Serve(const std::string& address = "127.0.0.1:0") {
    absl::StatusOr<std::unique_ptr<Listener>> listener = Listener::Bind(address, limits_);
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    grpc::ServerBuilder builder;
    listener_->AddTo(&builder, grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    listener_->Start([this](const std::string& why) {
      const std::lock_guard<std::mutex> lock(mutex_);
      complaints_.push_back(why);
    });
  }
  void TearDown() override {
    if (listener_ != nullptr) listener_->Stop();
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }
  std::string Complaints() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return absl::StrCat(complaints_.size(), complaints_.empty() ? "" : ": " + complaints_.front());
  }

  std::string folder_ = "/tmp/listener-XXXXXX";  // short, as a socket's path must be
  ConnectionLimits limits_;
  Stage::Service service_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<grpc::Server> server_;
  std::mutex mutex_;
  std::vector<std::string> complaints_;
};

TEST_F(ListenerTest, HandsCallsToTheServer) {
  // By number: for a name gRPC asks a resolver, which keeps memory for good.
  std::vector<std::pair<std::string, std::string>> called = {{"127.0.0.1:0", "127.0.0.1"},
                                                             {"localhost:0", "127.0.0.1"},
                                                             {"0.0.0.0:0", "127.0.0.1"},
                                                             {"unix:" + folder_ + "/l.sock", ""}};
  if (HasLoopback6()) {
    for (const char* address : {"[::1]:0", "[::]:0", "0.0.0.0:0", "*:0"}) {
      called.emplace_back(address, "[::1]");
    }
  }
  for (const auto& [address, host] : called) {
    Serve(address);
    std::string target = listener_->address();
    if (!host.empty()) target.replace(0, target.rfind(':'), host);
    const auto stub =
        Stage::NewStub(grpc::CreateChannel(target, grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    ReleaseResponse response;
    EXPECT_EQ(stub->Release(&context, {}, &response).error_code(), grpc::StatusCode::UNIMPLEMENTED)
        << address;
    TearDown();
  }
}

TEST_F(ListenerTest, AnAddressThatIsTakenIsNamed) {
  Serve();
  const auto second = Listener::Bind(listener_->address(), {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("cannot listen on " + listener_->address() + ": Address already in use"));
  for (const std::string malformed :
       {"here", ":1", "::1:1", "unix:", "nowhere.invalid:1", "127.0.0.1:x"}) {
    EXPECT_THAT(std::string(Listener::Bind(malformed, {}).status().message()),
                HasSubstr("cannot listen on " + malformed));
  }
}

TEST_F(ListenerTest, ASocketThatNobodyListensAtIsReplaced) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string path = folder_ + "/stale.sock";
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const int stale = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(stale, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  close(stale);
  Serve("unix:" + path);
  EXPECT_FALSE(Listener::Bind("unix:" + path, {}).ok());
}

TEST_F(ListenerTest, ConnectionsBeyondTheLimitAreClosedAndOthersServedOnceThereIsRoom) {
  limits_.most = 4;
  Serve();
  std::vector<Peer> peers;
  for (size_t i = 0; i < limits_.most; ++i) {
    EXPECT_TRUE(peers.emplace_back(listener_->address()).IsServed());
  }
  EXPECT_TRUE(Peer(listener_->address()).IsClosed());
  EXPECT_EQ(Complaints(), "1: there are 4 connections, no more are accepted");
  peers.clear();
  bool is_served = false;  // true once the server has seen their ends
  for (int i = 0; i < 100 && !is_served; ++i) {
    is_served = Peer(listener_->address()).IsServed();
    if (!is_served) usleep(20'000);
  }
  EXPECT_TRUE(is_served);
}

TEST_F(ListenerTest, OneHostDoesNotTakeAllConnections) {
  limits_.most_of_host = 2;
  Serve();
  Peer first(listener_->address()), second(listener_->address());
  EXPECT_TRUE(first.IsServed() && second.IsServed());
  EXPECT_TRUE(Peer(listener_->address()).IsClosed());
  EXPECT_EQ(Complaints(), "1: there are 2 connections of 127.0.0.1, no more of it are accepted");
}

TEST_F(ListenerTest, APeerWhoseCallsAreRefusedTooOftenIsCutOff) {
  limits_.most_refusals = 3;
  Serve();
  Peer bad(listener_->address()), good(listener_->address());
  EXPECT_TRUE(bad.IsServed() && good.IsServed());
  for (int i = 0; i < 3; ++i) listener_->Refused(bad.name());
  listener_->Refused("unix:");
  EXPECT_TRUE(bad.IsClosed());
  EXPECT_TRUE(Peer(listener_->address()).IsServed());
}

TEST_F(ListenerTest, WhoSendsMuchWithoutBeingTrustedIsCutOff) {
  limits_.most_untrusted_bytes = 10'000;
  Serve();
  Peer stranger(listener_->address()), friendly(listener_->address());
  EXPECT_TRUE(stranger.IsServed() && friendly.IsServed());
  listener_->Trust(friendly.name());
  listener_->Trust("unix:");
  for (Peer* peer : {&stranger, &friendly}) peer->Greet();
  // Frames of a type that HTTP/2 does not have; a server must ignore them.
  const std::string nothing("\0\0\x08\x7F\0\0\0\0\0whatever", 17);
  for (int i = 0; i < 1000; ++i) friendly.Write(nothing);
  for (int i = 0; i < 1000; ++i) stranger.Write(nothing);
  EXPECT_TRUE(stranger.IsClosed());
  EXPECT_THAT(Complaints(), HasSubstr("bytes that belong to no run"));
  EXPECT_TRUE(friendly.IsAnswered());
}

TEST_F(ListenerTest, AcceptsAgainOnceThereAreDescriptors) {
  Serve();
  Peer early(listener_->address());
  ASSERT_TRUE(early.IsServed());  // whatever gRPC opens is open
  Peer late;
  rlimit before;
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none = {3, before.rlim_max};  // all that is open stays open
  setrlimit(RLIMIT_NOFILE, &none);
  late.Dial(listener_->address());
  for (int i = 0; i < 500 && Complaints() == "0"; ++i) usleep(10'000);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_THAT(Complaints(), HasSubstr("cannot accept: Too many open files"));
  EXPECT_TRUE(late.IsServed());
}

}  // namespace
}  // namespace thinwire
