#include "monitoring/metrics_server.h"

#include <microhttpd.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/host_port.h"
#include "base/listening_sockets.h"
#include "monitoring/process_metrics.h"
#include "prometheus/text_serializer.h"

namespace thinwire {
namespace {

// Limits for all addresses of a server together.
constexpr unsigned kConnections = 32, kThreads = 4;
// After this time a client that sent half a request loses its connection.
constexpr unsigned kIdleSeconds = 2;
constexpr size_t kMostRequestBytes = 32 << 10;
constexpr char kPlainText[] = "text/plain; charset=utf-8";
constexpr char kExposition[] = "text/plain; version=0.0.4; charset=utf-8";

struct Page {
  unsigned status = MHD_HTTP_OK;
  const char* type = kPlainText;
  std::string body;
};

MHD_Result Send(MHD_Connection* connection, const Page& page) {
  MHD_Response* response = MHD_create_response_from_buffer(
      page.body.size(), const_cast<char*>(page.body.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;  // this closes the connection
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, page.type);
  MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
  const MHD_Result queued = MHD_queue_response(connection, page.status, response);
  MHD_destroy_response(response);
  return queued;
}

Page Metrics(const MetricsSources& sources) {
  std::vector<prometheus::MetricFamily> families = ProcessMetrics().Collect();
  for (const auto& collectable : sources.collectables) {
    std::vector<prometheus::MetricFamily> more = collectable->Collect();
    std::move(more.begin(), more.end(), std::back_inserter(families));
  }
  std::string body = prometheus::TextSerializer().Serialize(families);
  if (sources.text) body += sources.text();
  return {MHD_HTTP_OK, kExposition, std::move(body)};
}

Page Health(const MetricsSources& sources) {
  if (sources.is_healthy()) return {MHD_HTTP_OK, kPlainText, "ok\n"};
  return {MHD_HTTP_SERVICE_UNAVAILABLE, kPlainText, "not serving\n"};
}

Page PageAt(std::string_view path, std::string_view method, const MetricsSources& sources) {
  if (path != "/metrics" && path != "/healthz") {
    return {MHD_HTTP_NOT_FOUND, kPlainText, "want /metrics or /healthz\n"};
  }
  if (method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD) {
    return {MHD_HTTP_METHOD_NOT_ALLOWED, kPlainText, "want GET\n"};
  }
  return path == "/metrics" ? Metrics(sources) : Health(sources);
}

// Handles a request, as the library calls it, on any of its threads.
MHD_Result Answer(void* sources, MHD_Connection* connection, const char* path, const char* method,
                  const char* /*version*/, const char* /*data*/, size_t* /*data_bytes*/,
                  void** /*request*/) {
  return Send(connection, PageAt(path, method, *static_cast<const MetricsSources*>(sources)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(const std::string& listen,
                                                                    MetricsSources sources) {
  const auto cannot = [&listen](absl::StatusCode code, absl::string_view why) {
    return absl::Status(code, absl::StrCat("cannot serve metrics at ", listen, ": ", why,
                                           "; see --metrics_listen"));
  };
  const absl::StatusOr<HostPort> at = ParseHostPort(listen);
  if (!at.ok()) return cannot(at.status().code(), at.status().message());
  absl::StatusOr<ListeningSockets> listening = ListenAt(*at);
  if (!listening.ok()) return cannot(listening.status().code(), listening.status().message());
  std::unique_ptr<MetricsServer> server(new MetricsServer(std::move(sources)));
  const auto addresses = static_cast<unsigned>(listening->sockets.size());
  for (OwnedDescriptor& socket : listening->sockets) {
    MHD_Daemon* daemon = MHD_start_daemon(
        MHD_USE_AUTO_INTERNAL_THREAD, 0, nullptr, nullptr, &Answer, &server->sources_,
        MHD_OPTION_LISTEN_SOCKET, socket.get(), MHD_OPTION_THREAD_POOL_SIZE,
        std::max(2u, kThreads / addresses), MHD_OPTION_CONNECTION_LIMIT,
        std::max(kThreads, kConnections / addresses), MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, kMostRequestBytes, MHD_OPTION_END);
    if (daemon == nullptr) {
      return cannot(absl::StatusCode::kUnavailable, "there are no threads or descriptors for it");
    }
    socket.Release();  // the daemon closes it
    server->daemons_.push_back(daemon);
  }
  server->address_ = HostPort{at->host, listening->port}.Text();
  return server;
}

MetricsServer::~MetricsServer() {
  for (MHD_Daemon* daemon : daemons_) MHD_stop_daemon(daemon);
}

}  // namespace thinwire
