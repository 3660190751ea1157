#include "monitoring/metrics_server.h"

#include <arpa/inet.h>
#include <civetweb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "prometheus/text_serializer.h"

namespace thinwire {
namespace {

// Whoever sends half a request holds a thread until then.
constexpr char kThreads[] = "32", kRequestMilliseconds[] = "2000";
constexpr int kOk = 200, kUnavailable = 503;
constexpr char kPlainText[] = "text/plain; charset=utf-8";
constexpr char kExposition[] = "text/plain; version=0.0.4; charset=utf-8";

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

// Returns what the library wants of a handler: the status that was sent.
int Answer(mg_connection* connection, int status, const char* type, const std::string& body) {
  const std::string head =
      absl::StrCat("HTTP/1.1 ", status, status == kOk ? " OK" : " Service Unavailable",
                   "\r\nContent-Type: ", type, "\r\nContent-Length: ", body.size(),
                   "\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n");
  mg_write(connection, head.data(), head.size());
  mg_write(connection, body.data(), body.size());
  return status;
}

}  // namespace

int MetricsServer::ServeMetrics(mg_connection* connection, void* server) {
  const auto& self = *static_cast<const MetricsServer*>(server);
  std::vector<prometheus::MetricFamily> families = self.process_.Collect();
  for (const auto& collectable : self.sources_.collectables) {
    std::vector<prometheus::MetricFamily> more = collectable->Collect();
    std::move(more.begin(), more.end(), std::back_inserter(families));
  }
  std::string body = prometheus::TextSerializer().Serialize(families);
  if (self.sources_.text) body += self.sources_.text();
  return Answer(connection, kOk, kExposition, body);
}

int MetricsServer::ServeHealth(mg_connection* connection, void* server) {
  const bool healthy = static_cast<const MetricsServer*>(server)->sources_.is_healthy();
  return Answer(connection, healthy ? kOk : kUnavailable, kPlainText,
                healthy ? "ok\n" : "not serving\n");
}

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(const std::string& listen,
                                                                    MetricsSources sources) {
  std::unique_ptr<MetricsServer> server(new MetricsServer(std::move(sources)));
  mg_init_library(MG_FEATURES_DEFAULT);
  const char* const options[] = {
      "listening_ports",    listen.c_str(),       "num_threads", kThreads,
      "request_timeout_ms", kRequestMilliseconds, nullptr};
  // The library takes options as if it changed them.
  server->context_ = mg_start(nullptr, nullptr, const_cast<const char**>(options));
  mg_server_port port;
  if (server->context_ == nullptr || mg_get_server_ports(server->context_, 1, &port) != 1) {
    return absl::UnavailableError(
        absl::StrCat("cannot serve metrics at ", listen,
                     ": is the address taken or malformed? See --metrics_listen"));
  }
  server->port_ = port.port;
  server->host_ = listen.substr(0, listen.rfind(':'));
  server->address_ = absl::StrCat(server->host_, ":", server->port_);
  mg_set_request_handler(server->context_, "/metrics", ServeMetrics, server.get());
  mg_set_request_handler(server->context_, "/healthz", ServeHealth, server.get());
  return server;
}

// The library looks for its end only between connections, and awaits those for two seconds at a
// time; so it gets connections until it has seen it.
MetricsServer::~MetricsServer() {
  if (context_ != nullptr) {
    std::atomic<bool> stopped{false};
    std::thread stopper([&] {
      mg_stop(context_);
      stopped = true;
    });
    while (!stopped) {
      Connect(host_, port_);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    stopper.join();
  }
  mg_exit_library();
}

}  // namespace thinwire
