// Encodes texts with the tokenizer of a model's folder, for comparison with other programs. Stdin
// has texts, each behind its length in bytes; stdout gets for each the number of its ids, the ids,
// and, behind its length, the text that comes back from them. Numbers have 32 bits.
// usage: hf_ids VOCABULARY_DIR text|ids
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "data/hf_tokenizer.h"

namespace thinwire {
namespace {

bool Read(void* to, size_t bytes) { return fread(to, 1, bytes, stdin) == bytes; }
void Write(const void* from, size_t bytes) { fwrite(from, 1, bytes, stdout); }
void WriteNumber(size_t number) {
  const auto narrow = static_cast<uint32_t>(number);
  Write(&narrow, sizeof(narrow));
}

absl::Status Answer(const HfTokenizer& tokenizer) {
  for (uint32_t bytes = 0; Read(&bytes, sizeof(bytes));) {
    std::string text(bytes, '\0');
    if (!Read(text.data(), bytes)) return absl::DataLossError("stdin ends within a text");
    const auto ids = tokenizer.Encode(text);
    if (!ids.ok()) return ids.status();
    const auto back = tokenizer.Decode(*ids);
    if (!back.ok()) return back.status();
    WriteNumber(ids->size());
    Write(ids->data(), ids->size() * sizeof(int32_t));
    WriteNumber(back->size());
    Write(back->data(), back->size());
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  using thinwire::Specials;
  if (argc != 3) {
    std::fprintf(stderr, "usage: hf_ids VOCABULARY_DIR text|ids\n");
    return 2;
  }
  const Specials specials = argv[2] == std::string("ids") ? Specials::kIds : Specials::kText;
  const auto tokenizer = thinwire::HfTokenizer::Load(argv[1], specials);
  const absl::Status status = tokenizer.ok() ? thinwire::Answer(**tokenizer) : tokenizer.status();
  if (status.ok()) return 0;
  std::fprintf(stderr, "hf_ids: %s\n", std::string(status.message()).c_str());
  return 1;
}
