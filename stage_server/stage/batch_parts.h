// Division of a batch among replicas and their microbatches. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "data/sampler.h"
#include "stage_server/stage/stage.h"

namespace thinwire {

// Returns the batches of the samples `all` of a data set, in order; the last may be smaller.
std::vector<SampleRange> BatchesOf(const SampleRange& all, int64_t batch_size);

// Returns the number of microbatches of a batch of so many samples. Each replica has
// spec.microbatches of them, in order. Of a small batch the last ones may have fewer, or none.
int MicrobatchesOf(const StageSpec& spec, int64_t batch_size);

// Return the number of replicas, the first ones, that have samples of such a batch, and the number
// of samples that one has.
int ReplicasWithSamples(const StageSpec& spec, int64_t batch_size);
int64_t SamplesOf(const StageSpec& spec, int64_t batch_size, int replica);

// Divides the part of `batch`, a range of the data set, that is carried here into the microbatches
// of each replica.
std::vector<std::vector<SampleRange>> PartsOf(const StageSpec& spec, const SampleRange& batch);

}  // namespace thinwire
