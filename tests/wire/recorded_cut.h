// One cut with both of its ends in this process, and a record of all that crosses it. The record
// has the frames, the tensors that senders were given and that receivers use, and the senders'
// counts.
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

// Samples of which a message is made.
struct MessageSamples {
  uint64_t batch = 0;  // in training, the name of the batch (see EpochOrder)
  absl::Span<const int64_t> ids;
  std::vector<uint32_t> document_starts = {};  // as in MessageHeader
};

// Record of one direction of a cut.
struct RecordedDirection {
  // Frames as gRPC writes them: a byte 0, the length in big-endian, the frame.
  std::string frames;
  nlohmann::json messages;  // array with one entry for each tensor
};

// Cut between two segments. Used by one thread.
class RecordedCut {
 public:
  // Makes cut number `cut` of the model. `spec` must outlive it.
  static absl::StatusOr<std::unique_ptr<RecordedCut>> New(const StageSpec& spec, int cut,
                                                          const Backend& backend);

  // Starts an epoch at both ends.
  void StartEpoch(const std::shared_ptr<const EpochRows>& rows);

  // Takes `x`, of the compute type, to the other end of the cut. Returns the tensor that is used
  // there.
  absl::StatusOr<Tensor> Cross(const Work& work, Direction direction, const MessageSamples& samples,
                               Tensor x);

  const BoundarySpec& boundary(Direction direction);
  const RecordedDirection& record(Direction direction) const;
  // Tensors CUT/DIRECTION/N/given and CUT/DIRECTION/N/used for entry N of that direction's
  // messages.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }

 private:
  explicit RecordedCut(const StageSpec& spec) : capture_(spec.capture) {}
  void Keep(const std::string& name, const Tensor& x);
  CutEnd& SendingEnd(Direction direction) {
    return direction == DIRECTION_ACTIVATION ? *upstream_ : *downstream_;
  }

  Capture capture_;
  RecordedDirection activations_, gradients_;  // written to by the links
  std::unique_ptr<CutEnd> upstream_, downstream_;
  std::deque<std::string> bytes_;  // data of tensors_
  std::vector<StoredTensor> tensors_;
};

}  // namespace thinwire
