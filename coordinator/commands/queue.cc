// `thinwire submit`, `watch`, `list` and `cancel`: what is asked of a `thinwire serve`. Each exits
// with 2 for what the server refuses, and with 1 for a server that cannot be reached or fails.

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/annotated.h"
#include "base/file.h"
#include "base/host_port.h"
#include "base/text.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/flags.h"
#include "coordinator/files/json.h"
#include "coordinator/run/progress.h"
#include "coordinator/serve/client.h"
#include "coordinator/session/exit_code.h"

namespace thinwire {
namespace {

struct QueueFlags {
  std::string server = kQueueAddress;  // host:port
  SecurityOptions security;
  std::vector<std::string> experiments;  // submit: paths of files
  std::vector<std::string> overrides;    // submit: path=value, of all of them
  std::string run;                       // watch, cancel: an id
  std::string format = "text";           // list: text or json
};

constexpr char kSubmitExamples[] =
    R"(Prints the ids of the runs. All files are checked by the server before it takes the first.
Paths in an experiment are the server's.

Examples:
  thinwire submit experiments/quickstart.yaml
  thinwire submit --server trainer:4600 a.yaml b.yaml --set epochs=20 \
      --tls_cert coordinator.pem --tls_key coordinator.key --tls_ca ca.pem
Exit codes: 0 taken, 1 the server cannot be reached or has no room, 2 wrong usage or
experiment.
)";

constexpr char kWatchExamples[] =
    R"(Prints what the run has printed and prints, to its end. Ctrl-C ends the watch, not the run.

Examples:
  thinwire watch quickstart-1
Exit codes: the run's, as of thinwire run; 1 the server was lost, 2 unknown run.
)";

constexpr char kListExamples[] = R"(Examples:
  thinwire list
  thinwire list --format json
)";

constexpr char kCancelExamples[] =
    R"(Takes a run out of the queue, or interrupts it as Ctrl-C does, with a checkpoint and a summary
of what was reached, and returns when it has ended.

Examples:
  thinwire cancel quickstart-2
Exit codes: 0 it has ended, 1 the server cannot be reached, 2 unknown run.
)";

constexpr absl::Duration kShortCall = absl::Seconds(30);

// Asks the server, which has to answer within `patience`: kExitDone if it does; otherwise says what
// went wrong, and whose fault it is.
ExitCode Ask(const QueueFlags& flags, absl::Duration patience, Interruption* interruption,
             const std::function<grpc::Status(Queue::Stub*, grpc::ClientContext*)>& call) {
  const absl::Status address = ParseHostPort(flags.server).status();
  if (!address.ok()) return Complain(Annotated(address, "--server"), kExitUsage);
  const absl::StatusOr<Security> security = Security::Load(flags.security);
  if (!security.ok()) return Complain(security.status(), kExitUsage);
  const absl::Status status = CallQueue(flags.server, *security, patience, interruption, call);
  if (status.ok()) return kExitDone;
  if (interruption->seen()) return Complain(absl::CancelledError("interrupted"), kExitInterrupted);
  const bool is_users = absl::IsInvalidArgument(status) || absl::IsNotFound(status);
  return Complain(status, is_users ? kExitUsage : kExitFailed);
}

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

// Lines of a run, as a terminal may be shown them.
absl::Status Print(const std::string& text) {
  std::string printable;
  for (const auto line : absl::StrSplit(text, '\n')) {
    absl::StrAppend(&printable, PrintableLine(std::string(line)), "\n");
  }
  printable.pop_back();  // a text that ends with a line's end has an empty piece behind it
  return WriteAll(STDOUT_FILENO, "stdout", printable);
}

// Prints the ids of the runs, a line each.
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
  SubmitResponse response;
  const ExitCode asked =
      Ask(flags, kShortCall, interruption, [&](Queue::Stub* stub, grpc::ClientContext* context) {
        return stub->Submit(context, request, &response);
      });
  if (asked != kExitDone) return asked;
  std::string ids;
  for (const std::string& run : response.runs()) absl::StrAppend(&ids, PrintableLine(run), "\n");
  return PrintResult(ids);
}

// Prints what the run prints, to its end, and returns the run's exit code.
int WatchCommand(const QueueFlags& flags, Interruption* interruption) {
  WatchRequest request;
  request.set_run(flags.run);
  QueuedRunStatus end;
  absl::Status printed;
  const auto follow = [&](Queue::Stub* stub, grpc::ClientContext* context) {
    const auto reader = stub->Watch(context, request);
    for (WatchEvent event; printed.ok() && reader->Read(&event);) {
      if (event.has_end()) end = event.end();
      if (!event.text().empty()) printed = Print(event.text());
    }
    if (!printed.ok()) context->TryCancel();
    const grpc::Status read = reader->Finish();
    return printed.ok() ? read : grpc::Status::OK;
  };
  const ExitCode asked = Ask(flags, absl::InfiniteDuration(), interruption, follow);
  if (!printed.ok()) return Complain(printed, kExitFailed);
  if (asked != kExitDone) return asked;
  const std::string what = WhatOf(end);
  const ExitCode said =
      PrintResult(PrintableLine(absl::StrCat(end.run(), ": ", end.state(),
                                             what.empty() ? "" : absl::StrCat(", ", what))) +
                  "\n");
  return end.exit_code() == kExitDone ? said : end.exit_code();
}

// Prints all runs, a line each.
int ListCommand(const QueueFlags& flags, Interruption* interruption) {
  ListResponse list;
  const ExitCode asked =
      Ask(flags, kShortCall, interruption, [&](Queue::Stub* stub, grpc::ClientContext* context) {
        return stub->List(context, {}, &list);
      });
  if (asked != kExitDone) return asked;
  return PrintResult(flags.format == "json" ? JsonText(ToJson(list), 2) + "\n" : Table(list));
}

// Returns 0 when the run has ended, however it did; prints how.
int CancelCommand(const QueueFlags& flags, Interruption* interruption) {
  CancelRequest request;
  request.set_run(flags.run);
  CancelResponse response;
  const auto cancel = [&](Queue::Stub* stub, grpc::ClientContext* context) {
    return stub->Cancel(context, request, &response);
  };
  const ExitCode asked = Ask(flags, absl::InfiniteDuration(), interruption, cancel);
  if (asked != kExitDone) return asked;
  return PrintResult(
      PrintableLine(absl::StrCat(response.run().run(), ": ", response.run().state())) + "\n");
}

void AddRunId(CLI::App* command, QueueFlags* flags) {
  command->add_option("RUN", flags->run, "its id, as submit and list print it")->required();
}

void AddServer(CLI::App* command, QueueFlags* flags) {
  command->add_option("--server", flags->server, "where `thinwire serve` listens, host:port")
      ->capture_default_str();
  AddSecurity(command, &flags->security);
}

}  // namespace

Command AddSubmit(CLI::App* app) {
  const auto flags = std::make_shared<QueueFlags>();
  CLI::App* submit = app->add_subcommand("submit", "put experiments into the queue of a server");
  submit->footer(kSubmitExamples);
  submit->add_option("EXPERIMENT", flags->experiments, "experiment files (YAML)")
      ->required()
      ->transform(kPath);
  AddOverrides(submit, &flags->overrides);
  AddServer(submit, flags.get());
  return {submit,
          [flags](Interruption* interruption) { return SubmitCommand(*flags, interruption); }};
}

Command AddWatch(CLI::App* app) {
  const auto flags = std::make_shared<QueueFlags>();
  CLI::App* watch = app->add_subcommand("watch", "show what a run of a server prints");
  watch->footer(kWatchExamples);
  AddRunId(watch, flags.get());
  AddServer(watch, flags.get());
  return {watch,
          [flags](Interruption* interruption) { return WatchCommand(*flags, interruption); }};
}

Command AddList(CLI::App* app) {
  const auto flags = std::make_shared<QueueFlags>();
  CLI::App* list = app->add_subcommand("list", "show the runs of a server");
  list->footer(kListExamples);
  AddFormat(list, &flags->format);
  AddServer(list, flags.get());
  return {list, [flags](Interruption* interruption) { return ListCommand(*flags, interruption); }};
}

Command AddCancel(CLI::App* app) {
  const auto flags = std::make_shared<QueueFlags>();
  CLI::App* cancel = app->add_subcommand("cancel", "end a run of a server");
  cancel->footer(kCancelExamples);
  AddRunId(cancel, flags.get());
  AddServer(cancel, flags.get());
  return {cancel,
          [flags](Interruption* interruption) { return CancelCommand(*flags, interruption); }};
}

}  // namespace thinwire
