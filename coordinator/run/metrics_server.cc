#include "coordinator/run/metrics_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

// Makes a connection and drops it. Without effect unless `host` is an IPv4 address.
void Connect(const std::string& host, int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) return;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  (void)connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  close(fd);
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(
    const std::string& listen, std::shared_ptr<prometheus::Registry> registry) {
  std::unique_ptr<MetricsServer> server(new MetricsServer);
  try {  // the library reports by exceptions
    server->exposer_ = std::make_unique<prometheus::Exposer>(listen, /*num_threads=*/1);
  } catch (const std::exception&) {
    return absl::UnavailableError(absl::StrCat("cannot serve metrics at ", listen,
                                               ": is the address taken? See --metrics_listen"));
  }
  server->exposer_->RegisterCollectable(registry);
  const std::vector<int> ports = server->exposer_->GetListeningPorts();
  server->port_ = ports.empty() ? 0 : ports.front();
  server->host_ = listen.substr(0, listen.rfind(':'));
  server->address_ = absl::StrCat(server->host_, ":", server->port_);
  return server;
}

// The library looks for its end only between connections, and awaits those for two seconds at a
// time; so it gets connections until it has seen it.
MetricsServer::~MetricsServer() {
  std::atomic<bool> stopped{false};
  std::thread stopper([&] {
    exposer_.reset();
    stopped = true;
  });
  while (!stopped) {
    Connect(host_, port_);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  stopper.join();
}

}  // namespace thinwire
