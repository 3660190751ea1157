// The program thinwire: finds the command that the command line names, and does it.

#include <signal.h>

#include <algorithm>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/build_info.h"
#include "base/resources.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/unknown_argument.h"
#include "coordinator/session/exit_code.h"
#include "coordinator/session/interruption.h"
#include "security/security.h"

namespace {

constexpr uint64_t kLeastDescriptors = 64;

constexpr char kDescription[] =
    "Pipeline-parallel training over slow networks, with compressed activations and gradients.";

// Prints what CLI11 makes of a command line that it did not accept, or the help that was asked for.
int Leave(const CLI::App& app, const CLI::ParseError& error) {
  const auto met = static_cast<CLI::ExitCodes>(error.get_exit_code());
  const bool lacks_command = met == CLI::ExitCodes::RequiredError && app.get_subcommands().empty();
  const bool may_be_unknown = met == CLI::ExitCodes::ExtrasError || lacks_command;
  const std::string unknown = may_be_unknown ? thinwire::UnknownArgument(app) : "";
  if (!unknown.empty()) {
    return thinwire::Complain(
        absl::InvalidArgumentError(unknown + "\nRun with --help for more information."),
        thinwire::kExitUsage);
  }
  std::ostringstream help;
  const int code = app.exit(error, help, std::cerr);
  const thinwire::ExitCode printed = thinwire::PrintResult(help.str());
  if (printed != thinwire::kExitDone) return printed;
  return code == 0 ? thinwire::kExitDone : thinwire::kExitUsage;
}

}  // namespace

int main(int argc, char** argv) {
  thinwire::KeepOpenSslToTheEnd();
  thinwire::Interruption interruption;
  signal(SIGPIPE, SIG_IGN);  // a reader of the output may leave; the run goes on
  // Writing beyond the limit on file sizes is then an error that names the file.
  signal(SIGXFSZ, SIG_IGN);
  const auto descriptors = thinwire::RaiseDescriptorLimit(kLeastDescriptors);
  if (!descriptors.ok()) return thinwire::Complain(descriptors.status(), thinwire::kExitFailed);
  CLI::App app(kDescription, "thinwire");
  app.set_version_flag("--version", "thinwire " + thinwire::BuildId());
  app.require_subcommand(1);
  std::vector<thinwire::Command> commands;
  for (const auto add : thinwire::kCommands) commands.push_back(add(&app));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return Leave(app, error);
  }
  const auto named = std::find_if(commands.begin(), commands.end(),
                                  [](const auto& command) { return command.line->parsed(); });
  return named->work(&interruption);  // the parse takes no line without one
}
