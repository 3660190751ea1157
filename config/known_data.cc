#include "config/known_data.h"

#include <vector>

#include "config/checks.h"

namespace thinwire {

absl::StatusOr<KnownData> FindKnownData(const std::string& name) {
  const std::vector<KnownData> all = {
      {"cifar10", {1, 32, 32, 3}, 10, 50000, 10000, /*has_folder=*/true},
      {"digits", {1, 8, 8, 1}, 10, 3823, 1797, /*has_folder=*/false},
  };
  std::vector<std::string> names;
  for (const KnownData& data : all) {
    if (data.name == name) return data;
    names.push_back(data.name);
  }
  return UnknownName("data.name", "data", name, names);
}

}  // namespace thinwire
