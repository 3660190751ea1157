#include "base/stand_in.h"

#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace thinwire {
namespace {

constexpr size_t kLooksAtBytes = 1024;
constexpr absl::string_view kPointer = "version https://git-lfs.github.com/spec/";

struct Archive {
  const char* kind;
  std::string_view mark;
  size_t at = 0;  // place of the mark
};
constexpr Archive kArchives[] = {{"gzip", "\x1F\x8B"},
                                 {"zip", "PK\x03\x04"},
                                 {"xz", std::string_view("\xFD"
                                                         "7zXZ\0",
                                                         6)},
                                 {"zstd", "\x28\xB5\x2F\xFD"},
                                 {"bzip2", "BZh"},
                                 {"tar", "ustar", 257}};

absl::string_view Begin(std::string_view content) {
  const std::string_view begin = content.substr(0, kLooksAtBytes);
  return {begin.data(), begin.size()};
}

// Returns "548105171" from a pointer's line "size 548105171"; empty if there is none.
std::string PointedBytes(absl::string_view pointer) {
  constexpr absl::string_view kSize = "\nsize ";
  const size_t at = pointer.find(kSize);
  if (at == absl::string_view::npos) return "";
  const absl::string_view rest = pointer.substr(at + kSize.size());
  return std::string(rest.substr(0, rest.find_first_not_of("0123456789")));
}

absl::Status StandsIn(const std::string& path, const std::string& what) {
  return absl::DataLossError(absl::StrCat(path, ": is ", what));
}

}  // namespace

bool IsHtml(std::string_view content) {
  const absl::string_view begin = absl::StripLeadingAsciiWhitespace(Begin(content));
  return absl::StartsWithIgnoreCase(begin, "<!doctype html") ||
         absl::StartsWithIgnoreCase(begin, "<html");
}

absl::Status CheckNoStandIn(const std::string& path, std::string_view content) {
  const absl::string_view begin = Begin(content);
  if (absl::StartsWith(begin, kPointer)) {
    const std::string bytes = PointedBytes(begin);
    return StandsIn(path, absl::StrCat("a pointer of Git LFS",
                                       bytes.empty() ? "" : absl::StrCat(" to ", bytes, " bytes"),
                                       ", want the file itself: `git lfs pull` gets it"));
  }
  if (IsHtml(content)) {
    return StandsIn(path,
                    "an HTML page, want the file itself: the download got the page about it, or an "
                    "error's");
  }
  return absl::OkStatus();
}

absl::Status CheckNoArchive(const std::string& path, std::string_view content) {
  for (const Archive& archive : kArchives) {
    if (content.size() < archive.at) continue;
    if (content.substr(archive.at, archive.mark.size()) != archive.mark) continue;
    return StandsIn(path, absl::StrCat("packed (", archive.kind, "), want it unpacked"));
  }
  return absl::OkStatus();
}

absl::Status StandInOr(const std::string& path, const absl::Status& otherwise) {
  if (otherwise.ok() || !CheckRegular(path).ok()) return otherwise;
  std::ifstream file(path, std::ios::binary);
  std::string begin(kLooksAtBytes, '\0');
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<size_t>(file.gcount()));
  RETURN_IF_ERROR(CheckNoStandIn(path, begin));
  return otherwise;
}

}  // namespace thinwire
