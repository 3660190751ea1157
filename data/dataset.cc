#include "data/dataset.h"

#include "absl/strings/str_cat.h"
#include "base/enum_names.h"
#include "data/cifar10.h"
#include "data/digits.h"

namespace thinwire {
namespace {

constexpr struct {
  DatasetInfo (*info)();
  absl::StatusOr<DataSplits> (*load)(const DataOptions& options);
} kDatasets[] = {{Cifar10Info, LoadCifar10}, {DigitsInfo, LoadDigits}};

}  // namespace

std::vector<DatasetInfo> AllDatasets() {
  std::vector<DatasetInfo> all;
  for (const auto& dataset : kDatasets) all.push_back(dataset.info());
  return all;
}

absl::StatusOr<DataSplits> LoadData(const DataOptions& options) {
  if (options.limit < 0 || options.test_limit < 0) {
    return absl::InvalidArgumentError(absl::StrCat("limit is ", options.limit, ", test_limit is ",
                                                   options.test_limit, ": want 0 or more"));
  }
  std::vector<std::string> known;
  for (const auto& dataset : kDatasets) {
    known.push_back(dataset.info().name);
    if (options.name == known.back()) return dataset.load(options);
  }
  return UnknownName("data", options.name, known);
}

}  // namespace thinwire
