// The commands of the program. Each stands in a file of its own, with its flags, its help and its
// work; this list is all that the rest of the program knows of it.
#pragma once

#include <functional>

#include "CLI/CLI.hpp"
#include "coordinator/session/interruption.h"

namespace thinwire {

struct Command {
  const CLI::App* line = nullptr;  // parsed() tells whether the command line names this command
  // Does the command's work and returns the process's exit code (exit_code.h); what went wrong is
  // said on stderr. To be called after the parse, on the main thread and before gRPC is used (see
  // Session::Start). Owns the flags that the parse sets.
  std::function<int(Interruption*)> work;
};

// Each adds a subcommand with its flags to `app`. The Command outlives every parse of `app`.
Command AddRun(CLI::App* app);
Command AddSweep(CLI::App* app);
Command AddEvaluate(CLI::App* app);
Command AddGenerate(CLI::App* app);
Command AddChat(CLI::App* app);
Command AddPlan(CLI::App* app);
Command AddTune(CLI::App* app);
Command AddProbe(CLI::App* app);
Command AddCodecs(CLI::App* app);
Command AddData(CLI::App* app);
Command AddCheckpoint(CLI::App* app);
Command AddReport(CLI::App* app);
Command AddTrace(CLI::App* app);
Command AddCompare(CLI::App* app);
Command AddDoctor(CLI::App* app);
Command AddDrain(CLI::App* app);
Command AddServe(CLI::App* app);
Command AddSubmit(CLI::App* app);
Command AddWatch(CLI::App* app);
Command AddList(CLI::App* app);
Command AddCancel(CLI::App* app);

// In the order of --help.
inline constexpr Command (*kCommands[])(CLI::App*) = {
    AddRun,    AddSweep,  AddEvaluate, AddGenerate,   AddChat,   AddPlan,  AddTune,
    AddProbe,  AddCodecs, AddData,     AddCheckpoint, AddReport, AddTrace, AddCompare,
    AddDoctor, AddDrain,  AddServe,    AddSubmit,     AddWatch,  AddList,  AddCancel,
};

}  // namespace thinwire
