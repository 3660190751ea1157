#include "data/dataset.h"

#include "absl/strings/str_cat.h"
#include "data/cifar10.h"
#include "data/digits.h"

namespace thinwire {

absl::StatusOr<DataSplits> LoadData(const DataOptions& options) {
  if (options.limit < 0 || options.test_limit < 0) {
    return absl::InvalidArgumentError(absl::StrCat("limit is ", options.limit, ", test_limit is ",
                                                   options.test_limit, ": want 0 or more"));
  }
  if (options.name == "cifar10") return LoadCifar10(options);
  if (options.name == "digits") return LoadDigits(options);
  return absl::InvalidArgumentError(
      absl::StrCat("unknown data '", options.name, "': there are cifar10 and digits"));
}

}  // namespace thinwire
