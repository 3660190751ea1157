// One piece whose contributions go through low_rank and are reduced factor by factor, as PowerSGD
// reduces them (Vogels et al., NeurIPS 2019, Algorithms 1 and 2;
// compress/codecs/power_iteration.h). All replicas start from the same Q. Both factors of what all
// use are sums over replicas, exact. Knows nothing of who sends what to whom.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/codecs/power_iteration.h"
#include "compress/feedback/feedback.h"
#include "compress/feedback/message_tensors.h"
#include "models/pieces.h"
#include "stage_server/boundary/statistics.h"
#include "wire/message.h"

namespace thinwire {

// Not thread-safe. Factors are fp32 in host memory, which nobody changes after they were returned.
class FactoredPiece {
 public:
  // Resources of all pieces: where tensors lie, and memory for the product of a replica's factors.
  struct Shared {
    Device* device = nullptr;
    CodecKernels* kernels = nullptr;
    ReusedTensor product;
  };

  // Makes a piece of that shape of as many replicas, whose contributions go through `codec`.
  // `shared` outlives it.
  FactoredPiece(const CodecSpec& codec, const Shape& shape, int replicas, Shared* shared)
      : shape_(shape),
        steps_(codec, shape, shared->kernels),
        own_(static_cast<size_t>(replicas)),
        shared_(shared) {}

  // Returns a replica's P, from its gradient, what feedback adds to it, and what its last exchange
  // left. `sender`, which outlives the exchange, keeps the compensated gradient up to Reproject.
  absl::StatusOr<Tensor> Project(int replica, const Tensor& gradient, std::vector<uint64_t> rows,
                                 FeedbackSender* sender);
  // Makes the sum of all P the basis P^ that all use. OutOfRange if it is not finite.
  absl::Status MakeBasis(Tensor sum);
  // Return that basis, and take it from who made it.
  const Tensor& basis() const { return basis_; }
  void SetBasis(Tensor basis) { basis_ = std::move(basis); }
  // Returns a carried replica's Q. With feedback its loss is kept.
  absl::StatusOr<Tensor> Reproject(int replica);
  // Returns what P^ Q^T loses of the compensated gradient of the replica whose Q was the last one.
  absl::StatusOr<MeasuredError> Measure(int replica, const Tensor& q);
  // Returns what all use, from the sum of all Q, which also is where the next exchange starts. The
  // tensor is valid until the next call for any piece.
  absl::StatusOr<Tensor> Finish(const Tensor& sum);

  // Keep a factor of a carried replica until it is added up, and return it.
  void Keep(int replica, Tensor factor) { own_[replica].factor = std::move(factor); }
  Tensor TakeKept(int replica) { return std::move(own_[replica].factor); }

  // Return the shapes of the first and the second factor.
  const Shape& first_shape() const { return steps_.p_shape(); }
  const Shape& second_shape() const { return steps_.q_shape(); }

 private:
  // State of a carried replica during an exchange.
  struct Own {
    FeedbackSender* sender = nullptr;
    Tensor message;     // its compensated gradient, in memory of the sender
    float largest = 0;  // magnitude in it
    Tensor factor;
  };

  // Returns P^ Q^T, valid until the next call for any piece.
  absl::StatusOr<Tensor> ProductWith(const Tensor& q);

  const Shape shape_;
  const PowerIteration steps_;
  std::vector<Own> own_;  // by replica
  Tensor basis_;
  Shared* const shared_;
};

// Returns a factor as the message of that key, without a copy.
Message FactorMessage(const MessageKey& key, const Tensor& factor);
// Returns the factor of that shape that a peer sent. InvalidArgument if the message is of another,
// OutOfRange if a number is not finite.
absl::StatusOr<Tensor> ReadFactor(const Message& message, const Shape& shape);
// Adds a factor to *sum, which is a copy of it if it was empty.
absl::Status AddFactor(const Tensor& factor, Tensor* sum);

}  // namespace thinwire
