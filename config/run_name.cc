#include "config/run_name.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

constexpr size_t kMaxNameBytes = 128;

bool IsAllowed(char c) {
  return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

bool IsGood(const std::string& name) {
  return !name.empty() && name.size() <= kMaxNameBytes && name != "." && name != ".." &&
         name[0] != '-' && std::all_of(name.begin(), name.end(), IsAllowed);
}

}  // namespace

absl::Status CheckRunName(const std::string& name) {
  if (IsGood(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "name: \"", name, "\", want 1 to ", kMaxNameBytes,
      " letters, digits, '.', '_' and '-', not '.' or '..' and not beginning with '-'"));
}

std::string RunNameOf(const std::string& path) {
  const std::string file = path.substr(path.find_last_of('/') + 1);
  std::string name;
  bool is_between = false;
  for (const char c : file.substr(0, file.find_last_of('.'))) {
    if (!IsAllowed(c) || (c == '-' && name.empty())) {
      is_between = !name.empty();
      continue;
    }
    if (is_between) name += '-';
    is_between = false;
    name += c;
  }
  name.resize(std::min(name.size(), kMaxNameBytes));
  return IsGood(name) ? name : "";
}

}  // namespace thinwire
