#include "coordinator/plan/table_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace thinwire {

std::string Wrapped(const std::string& head, const std::string& text) {
  std::string lines = head;
  size_t column = head.size();
  bool is_first = true;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (!is_first && column + 1 + word.size() > kTableColumns) {
      absl::StrAppend(&lines, "\n", std::string(head.size(), ' '));
      column = head.size();
    } else if (!is_first) {
      absl::StrAppend(&lines, " ");
      ++column;
    }
    absl::StrAppend(&lines, word);
    column += word.size();
    is_first = false;
  }
  return lines + "\n";
}

std::string DescriptionLines(const std::vector<Described>& all) {
  std::vector<std::string> directions;
  for (const Described& one : all) {
    if (std::find(directions.begin(), directions.end(), one.direction) == directions.end()) {
      directions.push_back(one.direction);
    }
  }
  std::string lines;
  for (const std::string& direction : directions) {
    std::vector<Described> these;
    std::copy_if(all.begin(), all.end(), std::back_inserter(these),
                 [&](const Described& one) { return one.direction == direction; });
    const bool are_equal = std::all_of(these.begin(), these.end(), [&](const Described& one) {
      return one.text == these[0].text;
    });
    if (are_equal) these.resize(1);
    for (const Described& one : these) {
      const std::string cut = are_equal ? "" : absl::StrFormat("%-10s ", one.boundary);
      lines += Wrapped(absl::StrFormat("%s%-10s  ", cut, one.direction), one.text);
    }
  }
  return lines;
}

}  // namespace thinwire
