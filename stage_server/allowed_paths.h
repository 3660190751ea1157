// Which files of this machine a coordinator may name. It writes an experiment for machines that are
// not its own, so none of its paths is used as it came.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/experiment.pb.h"

namespace thinwire {

struct AllowedPaths {
  std::vector<std::string> codec_plugins;  // folders with libraries of codecs
  std::string data = ".";                  // the folder that data sets lie below
  std::string state = ".";                 // the folder that feedback.dir lies below
};

// How long a server reads, less than its coordinator waits for Configure.
inline constexpr absl::Duration kReadingPatience = absl::Minutes(8);

// "data.dir: data/cifar10": what the experiment's data are read from, for a message.
std::string DataNames(const Experiment& experiment);

// Puts in the place of every path of the experiment where it leads here, links followed. A library
// is looked for by its file's name in codec_plugins alone, in their order; a relative path begins
// at the working directory. PermissionDenied for a path that leads out of its folder and
// NotFound for a library that no folder has, naming field, path and folder.
absl::Status ConfinePaths(const AllowedPaths& allowed, Experiment* experiment);

}  // namespace thinwire
