#include "coordinator/generate/stop_texts.h"

#include <algorithm>

namespace thinwire {
namespace {

// Returns how many bytes at the end of `text` are the longest beginning of `stop`.
size_t BeginningAtEnd(std::string_view text, std::string_view stop) {
  size_t bytes = std::min(text.size(), stop.size() - 1);
  while (text.substr(text.size() - bytes) != stop.substr(0, bytes)) --bytes;
  return bytes;
}

}  // namespace

std::string StopTexts::Take(std::string_view piece) {
  if (seen_) return "";
  held_.append(piece);
  size_t end = std::string::npos, kept = 0;
  for (const std::string& stop : stops_) {
    end = std::min(end, held_.find(stop));
    kept = std::max(kept, BeginningAtEnd(held_, stop));
  }
  seen_ = end != std::string::npos;
  const std::string shown = held_.substr(0, seen_ ? end : held_.size() - kept);
  held_.erase(0, seen_ ? held_.size() : shown.size());
  return shown;
}

}  // namespace thinwire
