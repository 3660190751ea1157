// Flags that several commands share.
#pragma once

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "coordinator/session/session.h"

namespace thinwire {

// Accepts finite numbers of at least 0; CLI::NonNegativeNumber accepts nan.
extern const CLI::Validator kSeconds;
// Accepts non-empty paths; a leading "~" becomes the home folder. For transform().
extern const CLI::Validator kPath;

// Adds --set.
void AddOverrides(CLI::App* command, std::vector<std::string>* overrides);
// Adds --allow_other_build.
void AddOtherBuild(CLI::App* command, SessionOptions* session);
// Adds --stage_server, --cuda_plugin and --allow_other_build.
void AddLaunch(CLI::App* command, SessionOptions* session);
// Adds the flags for TLS files and the token, for stages that are already running.
void AddSecurity(CLI::App* command, SecurityOptions* security);

}  // namespace thinwire
