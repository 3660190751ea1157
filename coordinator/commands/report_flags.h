// Flags of the commands that show finished runs: report and trace.
#pragma once

#include "CLI/CLI.hpp"
#include "coordinator/commands/report_command.h"
#include "coordinator/commands/trace_command.h"

namespace thinwire {

CLI::App* AddReport(CLI::App* app, ReportCommandFlags* flags);
CLI::App* AddTrace(CLI::App* app, TraceFlags* flags);

}  // namespace thinwire
