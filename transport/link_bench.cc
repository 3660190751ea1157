// Compares the throughput of a gRPC link with that of a bare socket of the same kind, in turns:
//
//   link_bench [--messages=N]
//
// Each side uses two threads of ours, one that sends and one that receives. The link carries 4 MiB
// payloads with all checksums and delivers each message as one checked buffer. The bare socket
// writes the same bytes and reads them into one buffer without a check. Prints the medians of the
// rounds and their ratio.

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/median.h"
#include "base/steady_time.h"
#include "transport/link_testing.h"
#include "wire/frame.h"

namespace thinwire {
namespace {

constexpr int kRounds = 9;
constexpr int kInFlight = 4;  // queue_capacity of the test links

void Require(bool held, const char* what) {
  if (held) return;
  std::fprintf(stderr, "link_bench: %s failed\n", what);
  std::exit(1);
}

double Rate(absl::Duration elapsed, int messages) {
  return static_cast<double>(kMaxChunkBytes) * messages / absl::ToDoubleSeconds(elapsed) * 1e-9;
}

// Returns the rate of a link. The receiver answers each message with an empty one, so that at most
// kInFlight are under way, as in a pipeline.
double LinkRate(Transport transport, int messages) {
  ConnectedLinks links(transport);
  const Message message = TestMessage(DIRECTION_ACTIVATION, kMaxChunkBytes);
  const Message answer = TestMessage(DIRECTION_GRADIENT, 0);
  std::thread receiver([&] {
    for (int i = 0; i < messages; ++i) {
      Require(links.downstream->Receive(TestDeadline()).ok(), "receiving");
      links.downstream->Send(answer);
    }
  });
  const SteadyTime start = SteadyTime::Now();
  for (int i = 0; i < messages; ++i) {
    if (i >= kInFlight) Require(links.upstream->Receive(TestDeadline()).ok(), "an answer");
    links.upstream->Send(message);
  }
  receiver.join();
  return Rate(SteadyTime::Now() - start, messages);
}

struct SocketPair {
  int sender = -1;
  int receiver = -1;
  ~SocketPair() {
    close(sender);
    close(receiver);
  }
};

void ConnectUnix(SocketPair* pair) {
  int ends[2];
  Require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  pair->sender = ends[0];
  pair->receiver = ends[1];
}

void ConnectTcp(SocketPair* pair) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof(address);
  Require(bind(listener, any, size) == 0 && listen(listener, 1) == 0, "listen");
  Require(getsockname(listener, any, &size) == 0, "getsockname");
  pair->sender = socket(AF_INET, SOCK_STREAM, 0);
  Require(connect(pair->sender, any, size) == 0, "connect");
  pair->receiver = accept(listener, nullptr, nullptr);
  close(listener);
}

double SocketRate(Transport transport, int messages) {
  SocketPair pair;
  transport == Transport::kUnix ? ConnectUnix(&pair) : ConnectTcp(&pair);
  const std::vector<char> from(kMaxChunkBytes, 1);
  std::vector<char> to(kMaxChunkBytes);
  std::thread receiver([&] {
    for (int i = 0; i < messages; ++i) {
      for (size_t done = 0; done < to.size();) {
        const ssize_t got = read(pair.receiver, to.data() + done, to.size() - done);
        Require(got > 0, "read");
        done += got;
      }
    }
  });
  const SteadyTime start = SteadyTime::Now();
  for (int i = 0; i < messages; ++i) {
    for (size_t done = 0; done < from.size();) {
      const ssize_t put = write(pair.sender, from.data() + done, from.size() - done);
      Require(put > 0, "write");
      done += put;
    }
  }
  receiver.join();
  return Rate(SteadyTime::Now() - start, messages);
}

void Compare(const char* name, Transport transport, int messages) {
  std::vector<double> link, raw;
  for (int round = 0; round < kRounds; ++round) {
    raw.push_back(SocketRate(transport, messages));
    link.push_back(LinkRate(transport, messages));
  }
  std::printf("| %-4s | %5.2f | %5.2f | %4.0f %% |\n", name, UpperMedian(raw), UpperMedian(link),
              100 * UpperMedian(link) / UpperMedian(raw));
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  int messages = 250;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (!absl::ConsumePrefix(&argument, "--messages=") || !absl::SimpleAtoi(argument, &messages) ||
        messages < 1) {
      std::fprintf(stderr, "link_bench: \"%s\", want --messages=N with N at least 1\n", argv[i]);
      return 2;
    }
  }
  std::printf("| socket | raw GB/s | link GB/s | link / raw |\n|---|---|---|---|\n");
  thinwire::Compare("Unix", thinwire::Transport::kUnix, messages);
  thinwire::Compare("TCP", thinwire::Transport::kTcp, messages);
  return 0;
}
