// Training samples that are not trained on but evaluated on (DataOptions::held_out), so that a
// choice among settings need not look at the test set.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/sampler.h"

namespace thinwire {

// Records of image data, by their place in the order of the files: [first, last).
struct ImageParts {
  SampleRange train;
  SampleRange held_out;  // empty where options.held_out is 0
};

// The last options.held_out of `samples` training records, and the first options.limit of the
// others; of those held out the first options.test_limit. InvalidArgument, naming the data by
// `what` (plural: "the training digits"), if there are too few.
absl::StatusOr<ImageParts> PartsOf(const std::string& what, int64_t samples,
                                   const DataOptions& options);

// The first `limit` of so many samples; 0: all.
SampleRange FirstOf(int64_t samples, int64_t limit);

// "a limit of 11 samples, but the test digits hold 10": InvalidArgument if there are too few.
absl::Status CheckLimit(const std::string& what, int64_t samples, int64_t limit);

// Tokens at the end of a training text that are held out: samples of them in blocks, and one more
// for the last label.
int64_t HeldOutTokens(const DataOptions& options);

}  // namespace thinwire
