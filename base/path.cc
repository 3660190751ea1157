#include "base/path.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace thinwire {

std::string WithHome(const std::string& path) {
  const bool names_home = path == "~" || path.compare(0, 2, "~/") == 0;
  const char* const home = std::getenv("HOME");
  if (!names_home || home == nullptr || *home == '\0') return path;
  return home + path.substr(1);
}

bool IsHubId(const std::string& path) { return path.compare(0, 3, "hf:") == 0; }

std::string AbsolutePath(const std::string& path) {
  if (path.empty() || IsHubId(path)) return path;
  std::string given = WithHome(path);
  while (given.compare(0, 2, "./") == 0 && given.size() > 2) given.erase(0, 2);
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(given, error);
  return error ? given : absolute.string();  // the working directory no longer exists
}

}  // namespace thinwire
