// Decides which files of this machine a coordinator may name. An experiment is written on another
// machine, so none of its paths is used as it came.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/experiment.pb.h"

namespace thinwire {

struct AllowedPaths {
  std::vector<std::string> codec_plugins;  // folders with codec libraries
  std::string data = ".";                  // folder below which data sets lie
  std::string state = ".";                 // folder below which feedback.dir lies
};

// Longest time that a server may read; shorter than its coordinator waits for Configure.
inline constexpr absl::Duration kReadingPatience = absl::Minutes(8);

// Returns the paths that the experiment's data are read from, for a message: "the data, data.dir:
// data/cifar10".
std::string DataNames(const Experiment& experiment);

// Replaces every path of the experiment by the path that it leads to here, with links followed. A
// link to a file of data keeps its name, as a mask may lie beside it; it, the mask and all to which
// they lead lie below the folder. A relative path begins at the working directory. Of a library
// only the file name is used; it is looked for in the folders of codec_plugins, in order.
// PermissionDenied for a path that leads out of its folder, NotFound for a library that no folder
// has or a name in the hub that this machine's cache lacks. Errors name field, path and folder.
// Where data are not read (`reads_data` is false), names in the hub stay as they are.
absl::Status ConfinePaths(const AllowedPaths& allowed, bool reads_data, Experiment* experiment);

}  // namespace thinwire
