// Encodes the lines of a JSONL file, for comparison with other programs. Stdout gets a line for
// each: a list of its token ids, of which those that are not to be learned are negative, less one.
// usage: document_tokens VOCABULARY_DIR CHAT FILE
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "data/chat_template.h"
#include "data/document_encoder.h"
#include "data/hf_tokenizer.h"
#include "data/lines.h"

namespace thinwire {
namespace {

absl::Status Print(const std::string& dir, const std::string& chat, const std::string& path) {
  ASSIGN_OR_RETURN(const auto tokenizer, HfTokenizer::Load(dir, Specials::kText));
  ChatKind kind{};
  RETURN_IF_ERROR(FromName(chat, &kind));
  ChatFormat format = KnownChatFormat(kind);
  if (kind == ChatKind::kAuto) {
    ASSIGN_OR_RETURN(format, FormatOfTemplate(dir));
  }
  const DocumentEncoder encoder(tokenizer.get(), format, LossOn::kAnswers);
  return ForEachLine(path, [&](std::string_view line) -> absl::Status {
    ASSIGN_OR_RETURN(Example example, ParseExample(line));
    ASSIGN_OR_RETURN(const auto written, encoder.Write(std::move(example)));
    ASSIGN_OR_RETURN(const auto tokens, encoder.Encode({written}));
    std::vector<int64_t> ids;
    for (const DocumentToken token : tokens[0]) {
      const int64_t id = token & ~kLearned;
      ids.push_back((token & kLearned) != 0 ? id : -id - 1);
    }
    std::printf("[%s]\n", absl::StrJoin(ids, ", ").c_str());
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: document_tokens VOCABULARY_DIR CHAT FILE\n");
    return 2;
  }
  const absl::Status status = thinwire::Print(argv[1], argv[2], argv[3]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "document_tokens: %s\n", std::string(status.message()).c_str());
  return 1;
}
