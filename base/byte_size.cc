#include "base/byte_size.h"

#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace thinwire {
namespace {

struct ByteUnit {
  const char* name;
  double bytes;
};

constexpr ByteUnit kByteUnits[] = {
    {"TiB", 0x1p40}, {"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}, {"TB", 1e12},
    {"GB", 1e9},     {"MB", 1e6},     {"kB", 1e3},     {"B", 1},        {"", 1}};

constexpr double kMostBytes = 0x1p60;

}  // namespace

absl::StatusOr<uint64_t> ParseByteSize(const std::string& text) {
  const size_t end = text.find_first_not_of("0123456789.");
  const std::string number = text.substr(0, end);
  std::string unit = end == std::string::npos ? "" : text.substr(end);
  absl::StripAsciiWhitespace(&unit);
  double amount = std::numeric_limits<double>::quiet_NaN(), bytes = amount;
  if (absl::SimpleAtod(number, &amount)) {
    for (const ByteUnit& one : kByteUnits) {
      if (unit == one.name) bytes = amount * one.bytes;
    }
  }
  if (bytes >= 1 && bytes <= kMostBytes) return static_cast<uint64_t>(std::llround(bytes));
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\", want a number of bytes of at least 1, as 12GiB or 500MB"));
}

std::string ByteSizeText(uint64_t bytes) {
  for (const ByteUnit& unit : {kByteUnits[0], kByteUnits[1], kByteUnits[2], kByteUnits[3]}) {
    const double amount = static_cast<double>(bytes) / unit.bytes;
    if (amount >= 1) return absl::StrFormat("%.3g %s", amount, unit.name);
  }
  return absl::StrCat(bytes, " B");
}

}  // namespace thinwire
