// `thinwire drain`: stage servers leave their runs in order, and end.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/status.h"
#include "base/text.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/flags.h"
#include "coordinator/fleet/stage_addresses.h"
#include "coordinator/fleet/stage_client.h"
#include "coordinator/session/exit_code.h"

namespace thinwire {
namespace {

struct DrainFlags {
  std::vector<std::string> servers;  // as users name them
  SecurityOptions security;
};

constexpr char kDrainExamples[] =
    R"(Does from afar what SIGTERM does on the server's machine: its run ends the step, goes on without
it or waits for another, and then the server ends. Says of each server which run it leaves; the
server may take until --leave_seconds of its own. docs/replicas.md has the rest.

Examples:
  thinwire drain node3:4700
  thinwire drain 'node{3..6}:4700' --tls_cert coordinator.pem --tls_key coordinator.key \
      --tls_ca ca.pem
Exit codes: 0 all were asked, 1 a server could not be reached or refused, 2 wrong usage.
)";

absl::StatusOr<std::vector<std::string>> AddressesOf(const std::vector<std::string>& servers) {
  ASSIGN_OR_RETURN(const StageAddresses named, StageAddresses::Parse(servers));
  if (!named.count()) {
    return absl::InvalidArgumentError("an open range, want one that says which servers");
  }
  const StageAddresses::Grid all =
      named.grid() ? *named.grid() : StageAddresses::Grid{1, *named.count()};
  return named.For(all);
}

int DrainCommand(const DrainFlags& flags) {
  const auto addresses = Annotated(AddressesOf(flags.servers), "SERVER");
  if (!addresses.ok()) return Complain(addresses.status(), kExitUsage);
  const absl::StatusOr<Security> security = Security::Load(flags.security);
  if (!security.ok()) return Complain(security.status(), kExitUsage);
  int code = kExitDone;
  for (const std::string& address : *addresses) {
    StageClient server(StagePlace(), address, Lease(), *security);
    const absl::StatusOr<std::string> run = server.Drain();
    if (!run.ok()) {
      code = Complain(run.status(), kExitFailed);
      continue;
    }
    const std::string line = run->empty()
                                 ? absl::StrCat(address, " ends; it has no run")
                                 : absl::StrCat(address, " leaves run ", *run, ", and ends");
    const ExitCode printed = PrintResult(PrintableLine(line) + "\n");
    if (printed != kExitDone) return printed;
  }
  return code;
}

}  // namespace

Command AddDrain(CLI::App* app) {
  const auto flags = std::make_shared<DrainFlags>();
  CLI::App* drain = app->add_subcommand("drain", "let stage servers leave their runs, and end");
  drain->footer(kDrainExamples);
  drain->add_option("SERVER", flags->servers, "host:port; may hold a range, node{3..6}:4700")
      ->required();
  AddSecurity(drain, &flags->security);
  return {drain, [flags](Interruption*) { return DrainCommand(*flags); }};
}

}  // namespace thinwire
