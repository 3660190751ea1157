// Detection of files that stand in for another which a checkout or a download failed to bring.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace thinwire {

// Returns DataLoss if `content`, a file or its first kilobyte, is a pointer of Git LFS or an HTML
// page. The error names `path`, what it is and how to get the real file.
absl::Status CheckNoStandIn(const std::string& path, std::string_view content);

// Checks the file `path` itself, in which the error `otherwise` was found. Returns the error of
// CheckNoStandIn if there is one, else `otherwise`.
absl::Status StandInOr(const std::string& path, const absl::Status& otherwise);

// Returns DataLoss if `content` is an archive that has to be unpacked first.
absl::Status CheckNoArchive(const std::string& path, std::string_view content);

// Returns true if `content` begins like an HTML page.
bool IsHtml(std::string_view content);

}  // namespace thinwire
