// Download of the files of a data set that others publish.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "coordinator/session/interruption.h"
#include "data/official.h"

namespace thinwire {

// Options of a download.
struct FetchOptions {
  std::string dir;  // target folder; created if needed
  // A folder, or the address of one, with the archive or the files under their own names; empty:
  // the official addresses.
  std::string from;
  bool shows_progress = false;  // on stderr
};

// Puts all files of `data` into options.dir, complete and with the official checksums, and returns
// the folder that has them. Files that are there already are not downloaded again, also in a
// subfolder with the archive's name. Downloads with curl, unpacks with tar or unzip. If an address
// fails, the next one is tried.
//
// An interrupted download, or a file that nothing here can unpack, stays as FILE.part, and the next
// call continues it. Files without the official checksum are removed. Unavailable names every
// address and its failure; NotFound names a missing program; Cancelled after a signal; Internal,
// PermissionDenied and the like if the folder cannot be written.
absl::StatusOr<std::string> FetchData(const OfficialData& data, const FetchOptions& options,
                                      Interruption* interruption);

}  // namespace thinwire
