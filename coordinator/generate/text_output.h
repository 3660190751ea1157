// Text on its way to stdout, as it comes.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace thinwire {

// Writes pieces of a text. The bytes of a character wait until it is whole. A terminal is shown the
// text as Printable has it.
class TextOutput {
 public:
  TextOutput();
  // Writes a piece. Errors of the write.
  absl::Status Write(std::string_view text);
  // Writes what is left, and a line's end unless the text ended with one. Another may begin.
  absl::Status End();

 private:
  absl::Status Flush(size_t bytes);

  const bool is_terminal_;
  std::string held_;
  char last_ = '\n';
};

}  // namespace thinwire
