// A text that a model writes, as people read it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/generate/text_writer.h"
#include "data/tokenizer.h"

namespace thinwire {

// Lets `writer` write behind the ids `text` until a token that ends texts, before the first of the
// texts `stops` (stop_texts.h), or to its most tokens. `show` gets each piece at once, also before
// an error. Errors of TextWriter::Write, of the tokenizer and of `show`.
absl::Status WriteReply(std::vector<int32_t> text, const Tokenizer& tokenizer,
                        const std::vector<std::string>& stops, TextWriter* writer,
                        const std::function<absl::Status(std::string_view piece)>& show);

}  // namespace thinwire
