// The stash of a stage: tensors that blocks keep, encoded by a codec; inputs of segments, which are
// received activations, as the bytes that came; and either in memory or elsewhere.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/stopwatch.h"
#include "compress/codec.h"
#include "compress/feedback/direction_spec.h"
#include "nn/stash.h"
#include "stage_server/boundary/received_payload.h"
#include "stage_server/boundary/step_trace.h"
#include "stage_server/stash/coded_tensor.h"
#include "stage_server/stash/stash_counts.h"
#include "stage_server/swap/swapper.h"
#include "tensor/tensor.h"

namespace thinwire {

struct StashOptions {
  std::optional<DirectionSpec> does;  // codec of tensors; absent: only inputs are put away
  std::set<std::string> not_coded;    // blocks whose tensors it does not encode
  uint64_t codec_seed = 0;
  int64_t error_every = 0;  // measures distortion on every n-th step; 0: never
  Device* device = nullptr;
  CodecKernels* kernels = nullptr;
  StashCounts* counts = nullptr;
  Swapper* swapper = nullptr;     // moves what is kept elsewhere; null: it stays
  std::set<std::string> swapped;  // blocks whose tensors, or payloads, it moves
  int chunk = 0;                  // whose passes these are
};

// Not thread-safe.
class TensorStash final : public Stash {
 public:
  // Makes a stash; device, kernels, counts and swapper outlive it. Returns the errors of NewCodec.
  static absl::StatusOr<std::unique_ptr<TensorStash>> New(const StashOptions& options);

  // Says of which pass the blocks come next, for the trace. A forward pass has the segment's input,
  // whose memory nobody writes to until End, with the payload that it can be made from; null: it is
  // a tensor like others.
  void Begin(const PlannedSlice& slice, Tensor input = {},
             std::shared_ptr<const ReceivedPayload> payload = nullptr);
  void End() { input_ = Tensor(), payload_ = nullptr; }

  // Errors name the block; those of moving anything come at any later call. OutOfRange if a tensor
  // has NaN or infinity, which the codec cannot carry, unless the specification lets it pass.
  absl::StatusOr<std::shared_ptr<StashedTensors>> Put(const std::string& block, const Pass& pass,
                                                      std::vector<KeptTensor> tensors) override;
  absl::StatusOr<std::vector<KeptTensor>> Take(const std::string& block,
                                               StashedTensors* stashed) override;

  // Returns the seconds that Put and Take took since the last call.
  double TakeSeconds();

 private:
  struct Source;
  class Entry;
  explicit TensorStash(const StashOptions& options) : options_(options) {}
  TensorCoding coding() const { return {codec_.get(), options_.kernels}; }
  // Puts one tensor away, unless it has to stay as it is, and adds what that took to *traffic.
  absl::Status PutAway(bool is_coded, uint64_t random_key, Source* source,
                       BoundaryStatistics::Traffic* traffic) const;
  // Has the swapper move what it is worth, and gets it back.
  absl::Status MoveAway(const Pass& pass, Entry* entry);
  absl::Status MoveBack(Entry* entry);
  absl::Status Measure(const Tensor& x, const Source& source) const;
  absl::StatusOr<Tensor> Make(const Source& source);
  absl::StatusOr<Tensor> FromSigns(const Source& source);
  // Adds the seconds since the start of `stopwatch`, and a slice of that name to the trace.
  void AddSeconds(const char* name, const Stopwatch::Reading& took);

  const StashOptions options_;
  std::unique_ptr<Codec> codec_;  // null: none
  PlannedSlice slice_;
  Tensor input_;
  std::shared_ptr<const ReceivedPayload> payload_;
  Tensor ones_;  // as many as FromSigns has needed so far
  double seconds_ = 0;
};

}  // namespace thinwire
