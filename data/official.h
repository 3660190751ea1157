// Data sets that others publish: their files, and where these are to be had.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace thinwire {

struct OfficialFile {
  std::string name;
  int64_t bytes = 0;
  std::string sha256;
};

// One place that has all files of a data set: an archive, or an address for each.
struct OfficialSource {
  std::string archive;             // address of a .tar.gz or .zip; empty: `files` has the addresses
  std::string folder;              // in the archive, of the files
  std::vector<std::string> files;  // addresses, in the order of OfficialData::files
};

struct OfficialData {
  std::string name;
  std::string what;  // in a few words
  std::vector<OfficialFile> files;
  std::vector<OfficialSource> sources;  // the first that answers is taken
};

const std::vector<OfficialData>& AllOfficialData();
// `name` is one of them.
const OfficialData& OfficialDataOf(std::string_view name);

// DataLoss naming `path`, with the size and SHA-256 met and wanted, unless `content` is what `file`
// holds.
absl::Status CheckOfficial(const OfficialFile& file, const std::string& path,
                           std::string_view content);

// All of PATH. NotFound names it and the command that fetches `data`.
absl::StatusOr<std::string> ReadDataFile(const std::string& path, std::string_view data);

}  // namespace thinwire
