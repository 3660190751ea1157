#include "coordinator/run/published.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "config/checkpoint_rotary.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostPositions = 1024;

std::string ConfigOf(const std::string& dir) { return absl::StrCat(dir, "/config.json"); }

// Returns how many positions a sample may have. Whoever reads a broken file for the model reports
// it.
int64_t PositionsOf(const std::string& dir) {
  int64_t positions = kMostPositions;
  const Json config =
      Json::parse(ReadFile(ConfigOf(dir)).value_or(""), nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) return positions;
  for (const char* const key : {"n_positions", "max_position_embeddings"}) {
    const Json most = config.value(key, Json());
    if (most.is_number_unsigned()) positions = std::min(positions, most.get<int64_t>());
  }
  return std::min(positions, WindowOf(config).value_or(positions));
}

}  // namespace

bool IsPublished(const std::string& dir) {
  std::error_code ignored;  // reading reports an unreadable file
  return std::filesystem::exists(ConfigOf(dir), ignored);
}

std::string FileToGenerate(const std::string& dir, int64_t vocabulary, bool is_whole) {
  const int64_t positions = PositionsOf(dir);
  Json file = {{"name", "model"}, {"init", dir}, {"epochs", 1}, {"optimizer", {{"lr", 1}}}};
  file["data"] = {{"name", "shakespeare"},
                  {"tokens", "bytes"},
                  {"context", positions},
                  {"batch_size", 1},
                  {"corpus",
                   {{"vocabulary", vocabulary},
                    {"train_tokens", positions + 1},
                    {"test_tokens", positions + 1}}}};
  if (is_whole) file["pipeline"] = {{"stages", 1}};
  return file.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace thinwire
