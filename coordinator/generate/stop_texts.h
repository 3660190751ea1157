// Texts that end a generated text where they first occur in it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace thinwire {

// Looks for several texts in one that comes piece by piece.
class StopTexts {
 public:
  // Looks for `stops`, none of which is empty.
  explicit StopTexts(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // Appends `piece`. Returns what may be shown now: all before the first stop text, but for an end
  // that may be the beginning of one. Nothing once one has been seen.
  std::string Take(std::string_view piece);
  // Returns what was held back as a possible beginning, once nothing more comes.
  std::string Rest() { return std::exchange(held_, {}); }
  // Returns whether one has come.
  bool seen() const { return seen_; }

 private:
  const std::vector<std::string> stops_;
  std::string held_;
  bool seen_ = false;
};

}  // namespace thinwire
