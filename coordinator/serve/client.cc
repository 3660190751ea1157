#include "coordinator/serve/client.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace thinwire {
namespace {

constexpr int kKeepaliveMilliseconds = 10000;
constexpr int kMostAnswerBytes = 64 << 20;

}  // namespace

QueueClient::QueueClient(std::string server, Security security, Interruption* interruption)
    : server_(std::move(server)), security_(std::move(security)), interruption_(*interruption) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMilliseconds);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetMaxReceiveMessageSize(kMostAnswerBytes);
  stub_ = Queue::NewStub(grpc::CreateCustomChannel(
      server_, security_.ChannelCredentials(Role::kCoordinator), arguments));
}

absl::Status QueueClient::Call(
    absl::Duration patience,
    const std::function<grpc::Status(Queue::Stub*, grpc::ClientContext*)>& make) {
  grpc::ClientContext context;
  security_.Show(&context);
  if (patience < absl::InfiniteDuration()) {
    context.set_deadline(absl::ToChronoTime(absl::Now() + patience));
  }
  interruption_.OnFirst([&context] { context.TryCancel(); });
  const grpc::Status status = make(stub_.get(), &context);
  interruption_.OnFirst(nullptr);
  return status.ok() ? absl::OkStatus() : Error(status);
}

// Returns the call's error. It names the server, unless the server has refused the request.
absl::Status QueueClient::Error(const grpc::Status& status) const {
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  std::string message = status.error_message();
  if (code == absl::StatusCode::kInvalidArgument || code == absl::StatusCode::kNotFound) {
    return absl::Status(code, message);
  }
  const bool is_closed = absl::StrContains(message, "Socket closed") ||
                         absl::StrContains(message, "Connection reset") ||
                         absl::StrContains(message, "andshake");
  if (is_closed) {
    absl::StrAppend(&message, security_.has_tls()
                                  ? "; does it take this program's certificate (--tls_cert)?"
                                  : "; does it want a certificate (--tls_cert, --tls_key, "
                                    "--tls_ca)?");
  }
  return absl::Status(code, absl::StrCat("server ", server_, ": ", message));
}

}  // namespace thinwire
