// Held-out samples: training samples that are used for evaluation instead (DataOptions::held_out),
// so that settings can be chosen without the test set. Other numbers of samples that are asked for.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/sampler.h"

namespace thinwire {

// Ranges [first, last) of image records, in the order of the files.
struct ImageParts {
  SampleRange train;
  SampleRange held_out;  // empty if options.held_out is 0
};

// Returns the last options.held_out of `samples` training records as held out, the first
// options.test_limit of them, and the first options.limit of the others for training.
// InvalidArgument if there are too few; it names the data by `what` (plural: "the training
// digits").
absl::StatusOr<ImageParts> PartsOf(const std::string& what, int64_t samples,
                                   const DataOptions& options);

// Returns the first `limit` of `samples`; 0: all.
SampleRange FirstOf(int64_t samples, int64_t limit);

// Returns InvalidArgument, "a limit of 11 samples, but the test digits hold 10", if there are too
// few.
absl::Status CheckLimit(const std::string& what, int64_t samples, int64_t limit);

// Returns InvalidArgument, naming the data and both sizes, unless `wanted` is not known or is
// `size`; both are of samples.
absl::Status CheckPlannedSamples(const std::string& name, const CorpusSize& size,
                                 const CorpusSize& wanted);

// Returns the number of tokens at the end of a training text that are held out: the blocks of the
// samples, and one more for the last label.
int64_t HeldOutTokens(const DataOptions& options);

}  // namespace thinwire
