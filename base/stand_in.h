// What stands in the place of a file when a checkout or a download did not bring the file itself.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace thinwire {

// DataLoss if `content`, a file's or its first kilobyte, is a pointer of Git LFS or an HTML page.
// The error names `path`, what it is and how to get what it stands for.
absl::Status CheckNoStandIn(const std::string& path, std::string_view content);

// The same for the file itself, where another error, `otherwise`, was found in it: that one, if it
// is neither.
absl::Status StandInOr(const std::string& path, const absl::Status& otherwise);

// DataLoss if it is an archive, which somebody is to unpack.
absl::Status CheckNoArchive(const std::string& path, std::string_view content);

// True for the first line of an HTML page.
bool IsHtml(std::string_view content);

}  // namespace thinwire
