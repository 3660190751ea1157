#include <filesystem>
#include <string>
#include <system_error>

#include "base/status.h"
#include "data/bytes.h"
#include "data/known_sets.h"
#include "data/official.h"

namespace thinwire {
namespace {

absl::StatusOr<std::string> Read(const std::string& dir, const OfficialFile& file, bool verify) {
  const std::string path = dir + "/" + file.name;
  ASSIGN_OR_RETURN(std::string content, ReadDataFile(path, "wikitext2"));
  if (verify) RETURN_IF_ERROR(CheckOfficial(file, path, content));
  return content;
}

}  // namespace

absl::StatusOr<CorpusText> ReadWikitext2(const DataOptions& options) {
  const OfficialData& official = OfficialDataOf("wikitext2");
  CorpusText text;
  text.name = "wikitext2";
  text.folder = options.dir.empty() ? "." : options.dir;
  const std::string inner = text.folder + "/wikitext-2";
  std::error_code ignored;  // reading reports a missing folder
  if (std::filesystem::exists(inner + "/" + official.files[0].name, ignored)) text.folder = inner;
  ASSIGN_OR_RETURN(text.train, Read(text.folder, official.files[0], options.verify));
  ASSIGN_OR_RETURN(text.test, Read(text.folder, official.files[1], options.verify));
  return text;
}

CorpusSize Wikitext2Size(TokenKind tokens) {
  if (tokens == TokenKind::kCharacters) return {283, 10780437, 1120192};
  if (tokens == TokenKind::kBytes) {
    const OfficialData& official = OfficialDataOf("wikitext2");
    return {Bytes::kVocabulary, official.files[0].bytes, official.files[1].bytes};
  }
  return {50257, 2448382, 258659};
}

}  // namespace thinwire
