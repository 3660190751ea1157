// One cut with both of its ends here, and a record of all that crosses it: the frames, the tensors
// that senders were given and receivers use, and what the senders counted.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/safetensors.h"
#include "nlohmann/json.hpp"
#include "stage_server/stage/capture.h"
#include "stage_server/stage/cut_end.h"
#include "stage_server/stage/stage.h"
#include "tensor/tensor.h"

namespace thinwire {

// Where a message's samples come from.
struct MessageSamples {
  uint64_t batch = 0;  // name of the batch, see BatchOrder; training
  absl::Span<const int64_t> ids;
};

// What crossed one direction of a cut.
struct RecordedDirection {
  std::string frames;       // as gRPC writes them: a byte 0, the length big-endian, the frame
  nlohmann::json messages;  // an array: one entry for each tensor
};

// One thread.
class RecordedCut {
 public:
  // `spec` outlives the cut.
  static absl::StatusOr<std::unique_ptr<RecordedCut>> New(const StageSpec& spec, int cut,
                                                          const Backend& backend);

  void StartEpoch(const std::shared_ptr<const EpochRows>& rows);

  // Takes `x`, of the compute type, to the other end of the cut and returns what is used there.
  absl::StatusOr<Tensor> Cross(const Work& work, Direction direction, const MessageSamples& samples,
                               Tensor x);

  const BoundarySpec& boundary(Direction direction);
  const RecordedDirection& record(Direction direction) const;
  // CUT/DIRECTION/N/given and CUT/DIRECTION/N/used of entry N of that direction's messages.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }

 private:
  explicit RecordedCut(const StageSpec& spec) : capture_(spec.capture) {}
  void Keep(const std::string& name, const Tensor& x);
  CutEnd& SendingEnd(Direction direction) {
    return direction == DIRECTION_ACTIVATION ? *upstream_ : *downstream_;
  }

  Capture capture_;
  RecordedDirection activations_, gradients_;  // the links write to them
  std::unique_ptr<CutEnd> upstream_, downstream_;
  std::deque<std::string> bytes_;  // of tensors_
  std::vector<StoredTensor> tensors_;
};

}  // namespace thinwire
