#include "coordinator/run/published.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hub_cache.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/hf_files.h"
#include "data/vocabulary_files.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostPositions = 1024;
constexpr int64_t kSamplesAtOnce = 8;
// Size of a text that nobody reads; a sample of any data.context is shorter.
constexpr int64_t kUnreadTokens = (int64_t{1} << 20) + 1;

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
  return positions;
}

Json FileOf(const std::string& dir) {
  return {{"name", "model"}, {"init", dir}, {"epochs", 1}, {"optimizer", {{"lr", 1}}}};
}

std::string Text(const Json& file) {
  return file.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Returns the fields of `data` about a text's tokens that vocabulary.json has under their names.
absl::StatusOr<Json> TokensOfRun(const std::string& dir) {
  const std::string path = absl::StrCat(dir, "/", kVocabularyFile);
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  Json about = Json::parse(content, nullptr, /*allow_exceptions=*/false);
  if (!about.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is no JSON map"));
  }
  const Json tokens = about.value("tokens", Json());
  about.erase("characters");  // those of the text have to be the same
  if (tokens != Name(TokenKind::kBytes) && tokens != Name(TokenKind::kCharacters)) {
    about["vocabulary"] = HubIdOr(dir);
  }
  if (tokens == Name(TokenKind::kBpe)) about["verify"] = false;
  return about;
}

// Returns these fields for the tokens of the folder.
absl::StatusOr<Json> TokensOf(const std::string& dir) {
  std::error_code ignored;  // reading reports an unreadable file
  const auto has = [&](const char* name) {
    return std::filesystem::exists(absl::StrCat(dir, "/", name), ignored);
  };
  if (has(kVocabularyFile)) return TokensOfRun(dir);
  if (!has(kTokenizerFile) && has("vocab.json") && has("merges.txt")) {
    return Json{{"tokens", Name(TokenKind::kBpe)}, {"vocabulary", HubIdOr(dir)}, {"verify", false}};
  }
  RETURN_IF_ERROR(ReadHfFiles(dir).status());
  return Json{{"tokens", Name(TokenKind::kHf)}, {"vocabulary", HubIdOr(dir)}};
}

// Returns whether a text has this name, and no file.
bool IsTextByName(const std::string& data) {
  std::error_code ignored;
  if (std::filesystem::exists(data, ignored)) return false;
  for (const KnownDataset& known : AllDatasets()) {
    if (known.name == data) return known.is_text && !known.has_file && !known.is_labelled;
  }
  return false;
}

}  // namespace

bool IsPublished(const std::string& dir) {
  std::error_code ignored;  // reading reports an unreadable file
  return std::filesystem::exists(ConfigOf(dir), ignored);
}

absl::Status NoModel(const absl::Status& recorded) {
  return absl::NotFoundError(
      absl::StrCat(recorded.message(), ", nor is it a model's folder: it has no config.json"));
}

std::string FileToGenerate(const std::string& dir, int64_t vocabulary, bool is_whole) {
  Json file = FileOf(dir);
  file["data"] = {{"name", "shakespeare"},
                  {"tokens", Name(TokenKind::kBytes)},
                  {"context", PositionsOf(dir)},
                  {"batch_size", 1},
                  {"corpus",
                   {{"vocabulary", vocabulary},
                    {"train_tokens", kUnreadTokens},
                    {"test_tokens", kUnreadTokens}}}};
  if (is_whole) file["pipeline"] = {{"stages", 1}};
  return Text(file);
}

absl::StatusOr<std::string> FileToEvaluate(const std::string& dir, const std::string& data) {
  ASSIGN_OR_RETURN(Json text, TokensOf(dir));
  text["name"] = IsTextByName(data) ? data : "text";
  if (!IsTextByName(data)) text["file"] = data;
  text["context"] = PositionsOf(dir);
  text["batch_size"] = kSamplesAtOnce;
  Json file = FileOf(dir);
  file["data"] = std::move(text);
  return Text(file);
}

}  // namespace thinwire
