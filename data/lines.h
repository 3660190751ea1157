// Files line by line, whatever their size; packed ones as what they stand for.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace thinwire {

// Longest line, in bytes.
inline constexpr size_t kMaxLineBytes = size_t{1} << 27;

// Hands every line of a file, without its end, to `take`, the last one also if it has no end. A
// byte order mark at the head does not count. An error of `take` gets the file's path and the
// line's number, from 1, before its message. Errors of ReadUnpacked too, DataLoss for a file that
// only stands in for another, and InvalidArgument for a line of more than kMaxLineBytes.
absl::Status ForEachLine(const std::string& path,
                         const std::function<absl::Status(std::string_view)>& take);

}  // namespace thinwire
