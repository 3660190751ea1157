// Downloads the files of a data set that others publish.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "coordinator/session/interruption.h"
#include "data/official.h"

namespace thinwire {

struct FetchOptions {
  std::string dir;   // where the files are to be; made if it is not there
  std::string from;  // a folder or the address of one that has the archive or the files by their
                     // own names; empty: the official addresses
  bool shows_progress = false;  // on stderr
};

// Puts all files of `data` into options.dir, each whole and with the official checksum, and returns
// the folder that has them: what is there already, or in it in a folder that is called as in an
// archive, is not downloaded again. Downloads by curl, unpacks by tar or unzip. An address that
// fails gives way to the next.
//
// A download that breaks off, or that nothing here can unpack, stays in the folder as FILE.part,
// and the next call goes on where it ended. Whatever does not have the official checksum is
// removed. Unavailable names every address and what became of it; NotFound the program that is
// missing; Cancelled after a signal; Internal, PermissionDenied and the like a folder that cannot
// be written.
absl::StatusOr<std::string> FetchData(const OfficialData& data, const FetchOptions& options,
                                      Interruption* interruption);

}  // namespace thinwire
