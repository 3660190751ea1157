// Reads any bytes as the files of a byte pair vocabulary followed by a text; zero bytes separate
// them. They must be refused, or make a tokenizer that reproduces every text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "data/bpe.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t first = all.find('\0');
  if (first == all.npos) return 0;
  const size_t second = all.find('\0', first + 1);
  const std::string_view merges = all.substr(first + 1, second - first - 1);
  const std::string_view text = second == all.npos ? "" : all.substr(second + 1);
  const auto bpe = thinwire::Bpe::Parse(all.substr(0, first), merges, thinwire::EndOfText::kToken);
  if (!bpe.ok()) return 0;
  const auto ids = (*bpe)->Encode(text);
  if (!ids.ok()) std::abort();
  for (const int32_t id : *ids) {
    if (id < 0 || id >= (*bpe)->vocabulary()) std::abort();
  }
  const auto decoded = (*bpe)->Decode(*ids);
  if (!decoded.ok() || *decoded != text) std::abort();
  return 0;
}
