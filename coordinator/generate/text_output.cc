#include "coordinator/generate/text_output.h"

#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "data/unicode.h"

namespace thinwire {
namespace {

// Works in parts that Printable does not shorten.
std::string Shown(const std::string& text) {
  std::string shown;
  for (size_t at = 0; at < text.size();) {
    const std::string_view part = std::string_view(text).substr(at, kPrintedBytes);
    const bool is_last = at + part.size() == text.size();
    shown += Printable(part.substr(0, is_last ? part.size() : WholeCharacters(part)));
    at += is_last ? part.size() : WholeCharacters(part);
  }
  return shown;
}

}  // namespace

TextOutput::TextOutput() : is_terminal_(isatty(STDOUT_FILENO) != 0) {}

absl::Status TextOutput::Write(std::string_view text) {
  held_.append(text);
  return Flush(WholeCharacters(held_));
}

absl::Status TextOutput::End() {
  if (last_ != '\n' || !held_.empty()) held_ += '\n';
  return Flush(held_.size());
}

absl::Status TextOutput::Flush(size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  const std::string text = held_.substr(0, bytes);
  held_.erase(0, bytes);
  last_ = text.back();
  return WriteAll(STDOUT_FILENO, "stdout", is_terminal_ ? Shown(text) : text);
}

}  // namespace thinwire
