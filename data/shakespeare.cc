#include <zstd.h>

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "data/bytes.h"
#include "data/known_sets.h"
#include "data/shakespeare/embedded.h"

namespace thinwire {
namespace {

constexpr size_t kBytes = 1'115'394;
constexpr size_t kTrainBytes = kBytes / 10 * 9 + kBytes % 10 * 9 / 10;

}  // namespace

absl::StatusOr<CorpusText> ReadShakespeare(const DataOptions&) {
  const std::string_view compressed = CompressedShakespeare();
  CorpusText text;
  text.name = "shakespeare";
  text.train.resize(kBytes);
  const size_t bytes =
      ZSTD_decompress(text.train.data(), kBytes, compressed.data(), compressed.size());
  if (ZSTD_isError(bytes) || bytes != kBytes) {
    return absl::InternalError(
        absl::StrCat("the embedded text is damaged: ",
                     ZSTD_isError(bytes) ? ZSTD_getErrorName(bytes) : "short"));
  }
  text.test = text.train.substr(kTrainBytes);
  text.train.resize(kTrainBytes);
  return text;
}

CorpusSize ShakespeareSize(TokenKind tokens) {
  if (tokens == TokenKind::kBpe) return {50257, 301966, 36059};
  const int64_t vocabulary = tokens == TokenKind::kBytes ? Bytes::kVocabulary : 65;
  return {vocabulary, kTrainBytes, kBytes - kTrainBytes};  // a character is a byte
}

}  // namespace thinwire
