// Text around the columns of a table for a terminal of 80 columns.
#pragma once

#include <string>
#include <vector>

namespace thinwire {

inline constexpr size_t kTableColumns = 80;

// Returns `head` and `text`, broken at spaces into lines of at most kTableColumns. Later lines are
// indented by the length of `head`. Ends with a line break.
std::string Wrapped(const std::string& head, const std::string& text);

// Description of one direction of a cut, its codec or its feedback, which does not fit into a
// column.
struct Described {
  std::string boundary, direction, text;
};

// Returns "activation  TEXT" where all cuts have the same text for a direction, else "layer1
// activation TEXT" for each of them. Directions stand in the order of their first appearance.
std::string DescriptionLines(const std::vector<Described>& all);

}  // namespace thinwire
