// Reads any bytes as a tokenizer.json and, behind a zero byte, a text. The file must be refused, or
// make a tokenizer with ids in range whose texts come back to what gives the same ids.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "data/hf_tokenizer.h"

namespace {

using thinwire::HfTokenizer;

void Try(const HfTokenizer& tokenizer, std::string_view text) {
  const auto ids = tokenizer.Encode(text);
  if (!ids.ok()) std::abort();
  for (const int32_t id : *ids) {
    if (id < 0 || id >= tokenizer.vocabulary()) std::abort();
  }
  if (!tokenizer.Decode(*ids).ok() || !tokenizer.Continue(*ids).ok()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t end = all.find('\0');
  thinwire::HfFiles files;
  auto parsed = thinwire::ParseTokenizerJson(all.substr(0, end));
  if (!parsed.ok()) return 0;
  files.tokenizer = *std::move(parsed);
  for (const auto specials : {thinwire::Specials::kText, thinwire::Specials::kIds}) {
    const auto tokenizer = HfTokenizer::Of(files, specials);
    if (!tokenizer.ok()) return 0;
    Try(**tokenizer, end == all.npos ? "" : all.substr(end + 1));
  }
  return 0;
}
