// What stands around the columns of a table that a terminal of 80 columns shows.
#pragma once

#include <string>
#include <vector>

namespace thinwire {

inline constexpr size_t kTableColumns = 80;

// `text` behind `head`, broken at spaces where it would go beyond the table; later lines are
// indented by the length of `head`. Ends with a line break.
std::string Wrapped(const std::string& head, const std::string& text);

// How one direction of a cut is coded, or compensated: what does not fit into a column.
struct Described {
  std::string boundary, direction, text;
};

// "activation  TEXT" where all cuts have the same text for the direction, "layer1  activation TEXT"
// for each of them otherwise. Directions in the order in which they come first.
std::string DescriptionLines(const std::vector<Described>& all);

}  // namespace thinwire
