#include <algorithm>

#include "base/text.h"

namespace thinwire {

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);  // distances of a[0, i) to every b[0, j)
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string NearestName(std::string_view name, const std::vector<std::string>& names) {
  const auto nearest = std::min_element(names.begin(), names.end(),
                                        [name](const std::string& a, const std::string& b) {
                                          return EditDistance(name, a) < EditDistance(name, b);
                                        });
  return nearest == names.end() ? "" : *nearest;
}

}  // namespace thinwire
