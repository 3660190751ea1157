// Text that the stages of a trained language model write, token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/run/model_shares.h"
#include "proto/experiment.pb.h"
#include "proto/stage.pb.h"

namespace thinwire {

// How to write.
struct WriterOptions {
  int64_t tokens = 0;      // most to draw at once
  bool compressed = true;  // True: with the codecs of the experiment.
  Sampling sampling = {};
};

// Totals of what a writer has done.
struct TextTotals {
  int64_t tokens = 0;       // number drawn
  double seconds = 0;       // of calls
  uint64_t wire_bytes = 0;  // sent across cuts by all stages
};

// Returns InvalidArgument if the experiment cannot generate text: its model takes no tokens or, if
// `compressed`, a cut has a codec that does not work position by position (IsCausal).
absl::Status CheckGenerates(const Experiment& experiment, bool compressed);

// The tokens in a model's context, of which the stages know the first ones.
class Window {
 public:
  explicit Window(int64_t context) : context_(context) {}

  // Makes `ids`, at least one, the context: the last ones, if they exceed it. The stages still
  // know those with which it begins as before.
  void Become(std::vector<int32_t> ids);
  // Returns the request that draws the token after the last one.
  GenerateRequest Next() const;
  // Appends `id`; the stages know all tokens before it. When the context is full, its later half
  // becomes the beginning of a new one.
  void Append(int32_t id);

 private:
  int64_t Size() const { return static_cast<int64_t>(ids_.size()); }
  void KeepLast(int64_t count);

  const int64_t context_;
  std::vector<int32_t> ids_;
  int64_t known_ = 0;
};

// Writes at the stages of a fleet, which remember what they read.
class TextWriter {
 public:
  // Configures the stages of `fleet`, which must not be leased yet, for the resolved `experiment`
  // of a language model, and sends them its weights. Blocks. `fleet` outlives the writer. Errors
  // as RunExperiment.
  static absl::StatusOr<TextWriter> Start(const Experiment& experiment, const ModelShares& weights,
                                          const WriterOptions& options, Fleet* fleet);

  // Draws tokens behind `text`, at least one token, of which the last ones count if they exceed the
  // context, until `on_token`, which gets each at once, returns false or an error. What the text
  // before begins with, too, is not computed again. Blocks. Errors as RunExperiment.
  absl::Status Write(std::vector<int32_t> text,
                     const std::function<absl::StatusOr<bool>(int32_t id)>& on_token);

  // Returns the totals of all calls, also after an error.
  const TextTotals& totals() const { return totals_; }

 private:
  TextWriter(const WriterOptions& options, int64_t context, Fleet* fleet)
      : options_(options), window_(context), fleet_(*fleet) {}
  absl::StatusOr<int32_t> Draw();

  const WriterOptions options_;
  Window window_;
  Fleet& fleet_;
  TextTotals totals_;
};

}  // namespace thinwire
