// Flags that several commands have.
#pragma once

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "coordinator/session/session.h"

namespace thinwire {

// A finite number of at least 0; CLI::NonNegativeNumber takes nan.
extern const CLI::Validator kSeconds;
// Not empty; a leading "~" becomes the home folder. For transform().
extern const CLI::Validator kPath;

// --set
void AddOverrides(CLI::App* command, std::vector<std::string>* overrides);
// --allow_other_build
void AddOtherBuild(CLI::App* command, SessionOptions* session);
// --stage_server, --cuda_plugin and --allow_other_build
void AddLaunch(CLI::App* command, SessionOptions* session);
// The TLS files and the token, towards stages that are already running.
void AddSecurity(CLI::App* command, SecurityOptions* security);

}  // namespace thinwire
