// Specification that both ends of one direction of a cut must agree on. sender.h and receiver.h
// have the ends; the state of compensations (error feedback) lives there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compress/feedback/direction_spec.h"
#include "compress/feedback/feedback.h"
#include "compress/kernels.h"
#include "stage_server/boundary/patience.h"
#include "stage_server/boundary/step_trace.h"
#include "tensor/tensor.h"
#include "wire/message.h"

namespace thinwire {

// Settings of one direction of one cut. Both ends have the same, but for `peer` and what belongs to
// the process: `patience` and all fields behind it.
struct BoundarySpec : DirectionSpec {
  std::string name;  // name of the cut: "layer1"
  std::string peer;  // the other end, as error messages name it: "stage 2 (10.0.0.7:4700)"
  uint32_t cut = 0;  // index in model order
  Direction direction = DIRECTION_UNSPECIFIED;
  Shape sample;  // shape of a sample, with a batch extent of 1
  // Number of positions of each slice, in order, where training messages carry slices of a
  // sequence. Empty if a message carries whole samples.
  std::vector<int64_t> slice_positions;
  // Whether messages may have document_starts: activations, and gradients whose codec asks for
  // them.
  bool packs_documents = false;
  Shape basis;  // shape of PHASE_BASIS messages; rank 0 if there are none
  DType compute = DType::kF32;
  bool keeps_support = false;  // activations: the gradients' codec needs the received non-zeros
  int64_t max_batch = 0;       // number of samples of the largest message
  uint64_t codec_seed = 0;
  int64_t error_every = 0;  // measures distortion on every n-th step; 0: never
  // Number of replicas whose messages cross, and how many training messages each has in a step at
  // most. What codecs and feedback remember, they remember for each replica.
  int replicas = 1;
  int replica_messages = 1;
  // True if the norm's messages are counted. Each pipeline that carries replicas has its own; those
  // of one are counted, so that counts do not depend on the number of carriers.
  bool counts_norm = true;
  int capacity = 1;  // number of messages in flight
  // Limit of waits for a neighbour or for this stage's own executor.
  std::shared_ptr<Patience> patience = std::make_shared<Patience>();
  std::shared_ptr<StepTrace> trace;  // null if nothing is traced
  // Activations of training: the receiver keeps the payloads with them, for who decodes them again
  // (received_payload.h).
  bool keeps_payloads = false;
  Device* device = nullptr;  // where the tensors are
  CodecKernels* kernels = nullptr;
};

// Returns the replica to which a message belongs; 0 outside of training.
int ReplicaOf(const BoundarySpec& spec, const MessageKey& key);

// Returns the size of the longest payload that this direction can carry. It covers exact messages,
// every level of the codec and what feedback sends.
absl::StatusOr<uint64_t> MaxPayloadBytes(const BoundarySpec& spec);

// Returns whether both ends of the direction can have payloads of `codec` in the device's memory.
bool CodesOnDevice(const BoundarySpec& spec, const CodecSpec& codec);

// Checks that a message is exact if it had to be, as one without compression has, and coded unless
// something lets it go exactly. InvalidArgument names its codec and the one wanted.
absl::Status CheckExactness(const BoundarySpec& spec, bool compressed, const MessageHeader& got);

// Returns whether all fp32 numbers of the tensor are finite, or an error of the device.
absl::StatusOr<bool> IsFinite(const Tensor& x, CodecKernels* kernels);

// Returns a copy in host memory of bytes in the memory of `device`, or errors of both.
absl::StatusOr<Payload> OnHost(absl::Span<const uint8_t> bytes, Device* device);

// Returns what both ends of feedback are made from.
FeedbackOptions FeedbackOptionsOf(const BoundarySpec& spec);

// Returns whether the trace wants slices of the training message `key`.
bool IsTraced(const BoundarySpec& spec, const MessageKey& key);

// Returns the slice `name` of a training message, for an end whose codec works on `thread`; a slice
// without a trace if the message is not traced.
PlannedSlice MessageSlice(const BoundarySpec& spec, Slice::Thread thread, const MessageKey& key,
                          const char* name);

// Places where an end encodes or decodes: on its own thread (between processes) or in the caller's
// (inside a process).
enum class Worker { kOwnThread, kInline };

// Keeps the codec of the last message and replaces it when a level changes its spec. Not
// thread-safe.
class CodecInForce {
 public:
  explicit CodecInForce(CodecKernels* kernels) : kernels_(kernels) {}
  // Returns the codec of `spec`, valid until the next call; the errors of NewCodec.
  absl::StatusOr<const Codec*> Get(const CodecSpec& spec);

 private:
  CodecKernels* const kernels_;
  std::unique_ptr<Codec> codec_;
};

}  // namespace thinwire
