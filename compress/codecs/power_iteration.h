// One power iteration of low_rank in steps, between which several senders add up their factors. So
// the sum of their tensors has factors that are sums themselves (PowerSGD; Vogels et al., NeurIPS
// 2019, Algorithms 1 and 2): P^ is the orthonormal basis of sum_g M_g Q, and the sum becomes
// P^ (sum_g M_g^T P^)^T.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/codec.h"
#include "tensor/tensor.h"

namespace thinwire {

// Steps of tensors of one shape. Factors are fp32 in host memory. Of a single tensor they give the
// bits of the codec's own payload, unless its values lie at the ends of fp32's range. Stateless;
// any thread.
class PowerIteration {
 public:
  // `spec` is of low_rank without per_sample; the kernels outlive the object.
  PowerIteration(const CodecSpec& spec, const Shape& shape, CodecKernels* kernels);

  // Return the shapes of P, [rows, rank], and of Q, [columns, rank].
  const Shape& p_shape() const { return p_shape_; }
  const Shape& q_shape() const { return q_shape_; }

  // Returns M Q of x, with the Q that `carry` has. Without one of that shape it starts afresh.
  // *largest becomes the largest magnitude in x. OutOfRange if x holds NaN or infinity,
  // InvalidArgument if the rank is too high or fp32 cannot hold the factor.
  absl::StatusOr<Tensor> Project(const Tensor& x, const Carry* carry, float* largest) const;
  // Makes the columns of P orthonormal, on the host. They have to be finite.
  void Orthonormalise(const Tensor& p) const;
  // Returns M^T P of x, of which Project found `largest`. InvalidArgument as there.
  absl::StatusOr<Tensor> Reproject(const Tensor& x, float largest, const Tensor& p) const;
  // Computes x = P Q^T, as the codec decodes both. InvalidArgument if they or x are not finite.
  absl::Status Multiply(const Tensor& p, const Tensor& q, const Tensor& x) const;

  // Returns what a message with that Q leaves to the next one.
  static std::shared_ptr<const Carry> CarryOf(Tensor q);

 private:
  const CodecSpec spec_;
  CodecKernels* const kernels_;
  Shape p_shape_, q_shape_;
};

}  // namespace thinwire
