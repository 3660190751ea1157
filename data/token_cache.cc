#include "data/token_cache.h"

#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/sha256.h"
#include "base/status.h"
#include "data/token_file.h"

namespace thinwire {

std::string TokenCacheName(const std::string& text_sha256, const Tokenizer& tokenizer,
                           absl::Span<const size_t> begins) {
  const std::optional<int32_t> end = tokenizer.end_of_text();
  const std::string between = begins.empty() ? "" : end ? absl::StrCat(" end ", *end) : " no end";
  return Sha256(absl::StrCat(text_sha256, tokenizer.digest(), absl::StrJoin(begins, " "), between));
}

absl::StatusOr<std::vector<int32_t>> CachedTokens(const std::string& folder,
                                                  const Tokenizer& tokenizer, std::string_view text,
                                                  absl::Span<const size_t> begins) {
  std::optional<absl::StatusOr<std::vector<int32_t>>> encoded;
  const auto source = [&](const TokenFile::Sink& sink) -> absl::Status {
    if (!encoded) encoded = tokenizer.EncodeDocuments(text, begins);
    RETURN_IF_ERROR(encoded->status());
    return sink(**encoded);
  };
  const auto file = TokenFile::Open(folder, TokenCacheName(Sha256(text), tokenizer, begins),
                                    tokenizer.vocabulary(), source);
  if (encoded) return *std::move(encoded);
  if (!file.ok()) return tokenizer.EncodeDocuments(text, begins);
  std::vector<int32_t> ids(static_cast<size_t>((*file)->size()));
  RETURN_IF_ERROR((*file)->Read(0, absl::MakeSpan(ids)));
  return ids;
}

}  // namespace thinwire
