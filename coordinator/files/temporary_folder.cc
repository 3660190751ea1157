#include "coordinator/files/temporary_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace thinwire {

absl::StatusOr<std::unique_ptr<TemporaryFolder>> TemporaryFolder::Make(const std::string& name) {
  const char* place = getenv("TMPDIR");
  std::string path =
      absl::StrCat(place != nullptr && *place != 0 ? place : "/tmp", "/", name, "-XXXXXX");
  if (mkdtemp(path.data()) == nullptr) return FileError(path, "cannot make the folder", errno);
  return std::unique_ptr<TemporaryFolder>(new TemporaryFolder(path));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace thinwire
