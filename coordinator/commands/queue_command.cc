#include "coordinator/commands/queue_command.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/host_port.h"
#include "base/status.h"
#include "base/text.h"
#include "coordinator/files/json.h"
#include "coordinator/run/progress.h"
#include "coordinator/session/exit_code.h"
#include "grpcpp/grpcpp.h"
#include "proto/queue.grpc.pb.h"

namespace thinwire {
namespace {

constexpr absl::Duration kShortCall = absl::Seconds(30);
constexpr int kPingMilliseconds = 10000, kPongMilliseconds = 10000;
constexpr int kMostAnswerBytes = 64 << 20;

// The server, and calls to it that a signal cancels.
class QueueClient {
 public:
  static absl::StatusOr<std::unique_ptr<QueueClient>> Dial(const QueueFlags& flags,
                                                           Interruption* interruption) {
    const absl::Status address = ParseHostPort(flags.server).status();
    if (!address.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--server: ", address.message()));
    }
    ASSIGN_OR_RETURN(Security security, Security::Load(flags.security));
    return std::unique_ptr<QueueClient>(
        new QueueClient(flags.server, std::move(security), interruption));
  }

  // Makes a call, which ends after `patience` at the latest. Errors name the server.
  absl::Status Call(absl::Duration patience,
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

  ExitCode Report(const absl::Status& error) const {
    if (interruption_.seen())
      return Complain(absl::CancelledError("interrupted"), kExitInterrupted);
    const bool is_users = absl::IsInvalidArgument(error) || absl::IsNotFound(error);
    return Complain(error, is_users ? kExitUsage : kExitFailed);
  }

 private:
  QueueClient(std::string server, Security security, Interruption* interruption)
      : server_(std::move(server)), security_(std::move(security)), interruption_(*interruption) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMilliseconds);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPongMilliseconds);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    arguments.SetMaxReceiveMessageSize(kMostAnswerBytes);
    stub_ = Queue::NewStub(grpc::CreateCustomChannel(
        server_, security_.ChannelCredentials(Role::kCoordinator), arguments));
  }

  // Adds the server's address to an error, but not if the server refused the request.
  absl::Status Error(const grpc::Status& status) const {
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

  const std::string server_;
  const Security security_;
  Interruption& interruption_;
  std::unique_ptr<Queue::Stub> stub_;
};

std::string WhatOf(const QueuedRunStatus& run) {
  if (!run.error().empty()) {
    return run.exit_code() == kExitFailed
               ? run.error()
               : absl::StrCat("exit code ", run.exit_code(), ": ", run.error());
  }
  if (!run.has_exit_code()) return run.progress();
  return run.has_test() ? TestText(run.test()) : "";
}

std::string Table(const ListResponse& list) {
  size_t width = 0;
  for (const QueuedRunStatus& run : list.runs()) width = std::max(width, run.run().size());
  std::string table;
  for (const QueuedRunStatus& run : list.runs()) {
    const std::string what = WhatOf(run);
    absl::StrAppend(
        &table,
        PrintableLine(absl::StrFormat("%-*s  %-9s%s%s", static_cast<int>(width), run.run(),
                                      run.state(), what.empty() ? "" : "  ", what)),
        "\n");
  }
  return table;
}

// Prints lines of a run as a terminal may get them.
absl::Status Print(const std::string& text) {
  std::string printable;
  for (const auto line : absl::StrSplit(text, '\n')) {
    absl::StrAppend(&printable, PrintableLine(std::string(line)), "\n");
  }
  printable.pop_back();  // the empty piece after the last line end
  return WriteAll(STDOUT_FILENO, "stdout", printable);
}

}  // namespace

int SubmitCommand(const QueueFlags& flags, Interruption* interruption) {
  SubmitRequest request;
  for (const std::string& path : flags.experiments) {
    const absl::StatusOr<std::string> text = ReadFile(path);
    if (!text.ok()) return Complain(text.status(), kExitUsage);
    SubmitRequest::File* file = request.add_experiments();
    file->set_name(path);
    file->set_text(*text);
  }
  for (const std::string& override_text : flags.overrides) request.add_overrides(override_text);
  const auto client = QueueClient::Dial(flags, interruption);
  if (!client.ok()) return Complain(client.status(), kExitUsage);
  SubmitResponse response;
  const absl::Status status =
      (*client)->Call(kShortCall, [&](Queue::Stub* stub, grpc::ClientContext* context) {
        return stub->Submit(context, request, &response);
      });
  if (!status.ok()) return (*client)->Report(status);
  std::string ids;
  for (const std::string& run : response.runs()) absl::StrAppend(&ids, PrintableLine(run), "\n");
  return PrintResult(ids);
}

int WatchCommand(const QueueFlags& flags, Interruption* interruption) {
  const auto client = QueueClient::Dial(flags, interruption);
  if (!client.ok()) return Complain(client.status(), kExitUsage);
  WatchRequest request;
  request.set_run(flags.run);
  QueuedRunStatus end;
  absl::Status printed;
  const absl::Status status = (*client)->Call(
      absl::InfiniteDuration(), [&](Queue::Stub* stub, grpc::ClientContext* context) {
        const auto reader = stub->Watch(context, request);
        for (WatchEvent event; printed.ok() && reader->Read(&event);) {
          if (event.has_end()) end = event.end();
          if (!event.text().empty()) printed = Print(event.text());
        }
        if (!printed.ok()) context->TryCancel();
        return reader->Finish();
      });
  if (!printed.ok()) return Complain(printed, kExitFailed);
  if (!status.ok()) return (*client)->Report(status);
  const std::string what = WhatOf(end);
  const ExitCode said =
      PrintResult(PrintableLine(absl::StrCat(end.run(), ": ", end.state(),
                                             what.empty() ? "" : absl::StrCat(", ", what))) +
                  "\n");
  return end.exit_code() == kExitDone ? said : end.exit_code();
}

int ListCommand(const QueueFlags& flags, Interruption* interruption) {
  const auto client = QueueClient::Dial(flags, interruption);
  if (!client.ok()) return Complain(client.status(), kExitUsage);
  ListResponse list;
  const absl::Status status =
      (*client)->Call(kShortCall, [&](Queue::Stub* stub, grpc::ClientContext* context) {
        return stub->List(context, {}, &list);
      });
  if (!status.ok()) return (*client)->Report(status);
  return PrintResult(flags.format == "json" ? JsonText(ToJson(list), 2) + "\n" : Table(list));
}

int CancelCommand(const QueueFlags& flags, Interruption* interruption) {
  const auto client = QueueClient::Dial(flags, interruption);
  if (!client.ok()) return Complain(client.status(), kExitUsage);
  CancelRequest request;
  request.set_run(flags.run);
  CancelResponse response;
  const absl::Status status = (*client)->Call(absl::InfiniteDuration(),
                                              [&](Queue::Stub* stub, grpc::ClientContext* context) {
                                                return stub->Cancel(context, request, &response);
                                              });
  if (!status.ok()) return (*client)->Report(status);
  return PrintResult(
      PrintableLine(absl::StrCat(response.run().run(), ": ", response.run().state())) + "\n");
}

}  // namespace thinwire
