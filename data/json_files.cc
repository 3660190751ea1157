#include "data/json_files.h"

#include <cstdint>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/stand_in.h"
#include "base/status.h"
#include "base/text.h"

namespace thinwire {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMostBytes = uint64_t{256} << 20;

}  // namespace

bool IsThere(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

absl::StatusOr<std::string> ReadPublished(const std::string& path) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (!error && bytes > kMostBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has ", bytes, " bytes, want at most ", kMostBytes));
  }
  return ReadFile(path);
}

absl::StatusOr<Json> ReadJsonMap(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadPublished(path));
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) return json;
  RETURN_IF_ERROR(CheckNoStandIn(path, text));
  return absl::InvalidArgumentError(absl::StrCat(path, ": is no JSON map"));
}

std::string Printed(const Json& value) {
  return PrintableLine(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace thinwire
