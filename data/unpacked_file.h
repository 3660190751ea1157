// Reading of files that may be packed.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "base/file.h"

namespace thinwire {

// Does what ReadFile does, and unpacks what begins like a file of gzip or zstd, also several of
// them one behind another, and zstd's frames that are to be skipped. DataLoss names a packed file
// that is broken or ends too early. Pieces have at most 1 MiB; memory is that of one, and of zstd's
// window (at most 128 MiB).
absl::Status ReadUnpacked(const std::string& path, const FileSink& sink);

}  // namespace thinwire
