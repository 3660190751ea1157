// Error compensation around any codec: what is added to a message so that what earlier ones lost is
// paid back (FeedbackSpec has the recursions). One sender and one receiver per direction of a cut;
// under ef21 both keep state, changed only by what was decoded, and equal bit for bit.
//
// State is kept by row: each sample of a message has one, and the caller says which (StateKey).
// Arithmetic on state is fp32 whatever the tensors' type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compress/codec.h"
#include "compress/feedback_spec.h"
#include "compress/state_store.h"
#include "tensor/tensor.h"

namespace thinwire {

// InvalidArgument for feedback that cannot work with the codec: state grows without bound unless C
// is a contraction (||C(x) - x||^2 <= (1 - d) ||x||^2, d > 0; Karimireddy et al., arXiv
// 1901.09847), and ef_mixed_b must be able to halve the budget. Names both, the value met and those
// wanted.
absl::Status CheckFeedbackOf(const FeedbackSpec& spec, const CodecSpec& codec);

// Bytes of state at each end when `num_rows` rows of [1, ...] `sample` are kept, within
// limit_bytes. In the folder `dir` if one is set, otherwise in memory.
struct StateBytes {
  uint64_t sender = 0, receiver = 0;
};
StateBytes StateBytesOf(const FeedbackSpec& spec, const Shape& sample, uint64_t num_rows);

// No payload of a message of this shape and type is longer, exact ones included.
size_t FeedbackMaxPayloadBytes(const FeedbackSpec& spec, const Codec& codec, const Shape& shape,
                               DType compute);

struct FeedbackOptions {
  FeedbackSpec spec;
  Shape sample;                 // of one sample, the first extent 1
  DType compute = DType::kF32;  // of the tensors that come and go: fp32 or bf16
  Device* device = nullptr;     // of tensors and state; outlives the object, as do the kernels
  CodecKernels* kernels = nullptr;
};

// One thread at a time.
class FeedbackSender {
 public:
  static absl::StatusOr<std::unique_ptr<FeedbackSender>> New(const FeedbackOptions& options);
  ~FeedbackSender();

  struct Outgoing {
    const Tensor* x = nullptr;        // [batch, ...], of the compute type
    absl::Span<const uint64_t> rows;  // of each sample, all different; may be empty under kNone
    bool compress = true;             // false: the message goes exact
    bool frozen = false;     // evaluation: plain C(x) (or x), no state is read or written; low_rank
                             // starts from the factor of training
    uint64_t step = 0;       // says when digests are taken
    MessageContext context;  // warm_start is filled in
    bool want_received = false;
  };
  // Tensors share the sender's memory and are valid until its next message.
  struct Encoded {
    size_t bytes = 0;
    bool exact = false;  // the payload is that of codec none, whatever codec was given
    bool first_visit = false;
    std::optional<uint64_t> state_digest;
    Tensor message;   // what the codec got: fp32, or of the compute type when it was x itself
    Tensor decoded;   // D(C(message)); only if want_received under kNone
    Tensor received;  // what the receiver will use, of the compute type; if want_received
  };
  // Writes the payload of one message to host memory of at least FeedbackMaxPayloadBytes.
  // InvalidArgument if the codec refuses the values (NaN), ResourceExhausted naming limit, bytes
  // wanted and rows; state is then as before, and the same message may be sent without `compress`.
  absl::StatusOr<Encoded> Encode(const Codec& codec, const Outgoing& outgoing,
                                 absl::Span<uint8_t> payload);

  // ||e|| / ||x|| after the message just sent; under ef21 ||x - A|| / ||x|| with the A before it. 0
  // under kNone and after exact messages. `x` as it was sent.
  absl::StatusOr<double> RelativeResidual(const Tensor& x) const;

  // For checkpoints: null when the kind keeps none.
  StateStore* state() { return state_.get(); }
  // low_rank's factor after the last message; empty for other codecs. Under every kind.
  const Tensor& warm_start() const { return warm_start_; }
  void set_warm_start(Tensor factor) { warm_start_ = std::move(factor); }

 private:
  explicit FeedbackSender(const FeedbackOptions& options);

  const FeedbackOptions options_;
  std::unique_ptr<StateStore> state_;
  Tensor warm_start_;
};

// One thread at a time.
class FeedbackReceiver {
 public:
  static absl::StatusOr<std::unique_ptr<FeedbackReceiver>> New(const FeedbackOptions& options);
  ~FeedbackReceiver();

  struct Incoming {
    absl::Span<const uint8_t> payload;
    Shape shape;                      // [batch, ...]
    absl::Span<const uint64_t> rows;  // as this end knows them; may be empty but under ef21
    bool exact = false;               // these three as the sender said
    bool first_visit = false;
    std::optional<uint64_t> state_digest;
    bool frozen = false;
    uint64_t step = 0;  // for errors
    MessageContext context;
  };
  // What the receiver uses, of the compute type. InvalidArgument if the payload is malformed: state
  // is then as before. FailedPrecondition starting with "DESYNC" if the message's first_visit is
  // not what this end's rows say, and "state differs" if the digest is not: names step and row.
  absl::StatusOr<Tensor> Decode(const Codec& codec, const Incoming& incoming);

  // For checkpoints: null unless ef21.
  StateStore* state() { return state_.get(); }

 private:
  explicit FeedbackReceiver(const FeedbackOptions& options);

  const FeedbackOptions options_;
  std::unique_ptr<StateStore> state_;
};

}  // namespace thinwire
