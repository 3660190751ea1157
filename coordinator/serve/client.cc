#include "coordinator/serve/client.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace thinwire {
namespace {

constexpr int kKeepaliveMilliseconds = 10000;
constexpr int kMostAnswerBytes = 64 << 20;

// Returns the call's error. It names the server, unless the server has refused the request.
absl::Status Error(const std::string& server, const Security& security,
                   const grpc::Status& status) {
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  std::string message = status.error_message();
  if (code == absl::StatusCode::kInvalidArgument || code == absl::StatusCode::kNotFound) {
    return absl::Status(code, message);
  }
  const bool is_closed = absl::StrContains(message, "Socket closed") ||
                         absl::StrContains(message, "Connection reset") ||
                         absl::StrContains(message, "andshake");
  if (is_closed) {
    absl::StrAppend(&message, security.has_tls()
                                  ? "; does it take this program's certificate (--tls_cert)?"
                                  : "; does it want a certificate (--tls_cert, --tls_key, "
                                    "--tls_ca)?");
  }
  return absl::Status(code, absl::StrCat("server ", server, ": ", message));
}

}  // namespace

absl::Status CallQueue(
    const std::string& server, const Security& security, absl::Duration patience,
    Interruption* interruption,
    const std::function<grpc::Status(Queue::Stub*, grpc::ClientContext*)>& make) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMilliseconds);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetMaxReceiveMessageSize(kMostAnswerBytes);
  const auto stub = Queue::NewStub(grpc::CreateCustomChannel(
      server, security.ChannelCredentials(Role::kCoordinator), arguments));
  grpc::ClientContext context;
  security.Show(&context);
  if (patience < absl::InfiniteDuration()) {
    context.set_deadline(absl::ToChronoTime(absl::Now() + patience));
  }
  interruption->OnFirst([&context] { context.TryCancel(); });
  const grpc::Status status = make(stub.get(), &context);
  interruption->OnFirst(nullptr);
  return status.ok() ? absl::OkStatus() : Error(server, security, status);
}

}  // namespace thinwire
