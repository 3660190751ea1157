// Published data sets: their files and where to get them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace thinwire {

// One file, as it is published.
struct OfficialFile {
  std::string name;
  int64_t bytes = 0;
  std::string sha256;
};

// A place that has all files of a data set: an archive, or an address for each file.
struct OfficialSource {
  std::string archive;             // address of a .tar.gz or .zip; empty: `files` has addresses
  std::string folder;              // folder of the files in the archive
  std::vector<std::string> files;  // addresses, in the order of OfficialData::files
};

// A published data set.
struct OfficialData {
  std::string name;
  std::string what;  // short description
  std::vector<OfficialFile> files;
  std::vector<OfficialSource> sources;  // tried in order until one answers
};

const std::vector<OfficialData>& AllOfficialData();
// Returns the data set called `name`, which must exist.
const OfficialData& OfficialDataOf(std::string_view name);

// Returns DataLoss, with `path` and the size and SHA-256 met and wanted, unless `content` is that
// of `file`.
absl::Status CheckOfficial(const OfficialFile& file, const std::string& path,
                           std::string_view content);

// Reads a whole file. NotFound names it and the command that fetches `data`.
absl::StatusOr<std::string> ReadDataFile(const std::string& path, std::string_view data);

}  // namespace thinwire
