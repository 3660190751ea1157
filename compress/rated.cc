#include "compress/rated.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/status.h"

namespace thinwire {
namespace {

constexpr int kMostTries = 10;
const double kFinest = std::log2(kLeastStep), kCoarsest = std::log2(kMostStep);

CodecSpec AtStep(CodecSpec spec, double step) {
  spec.rate = 0;
  spec.step = step;
  return spec;
}

// Entropy, in bits, of what is so with probability p.
double BinaryEntropy(double p) {
  return p <= 0 || p >= 1 ? 0 : -p * std::log2(p) - (1 - p) * std::log2(1 - p);
}

// Entropy, in bits, of the whole steps of a Laplacian source of variance 1 (Sullivan 1996): zero,
// or a sign and a geometric magnitude.
double LaplacianBits(double step) {
  const double decay = std::exp(-std::sqrt(2.0) * step);
  const double not_zero = std::sqrt(decay);
  return BinaryEntropy(not_zero) + not_zero * (1 + BinaryEntropy(decay) / (1 - decay));
}

// The logarithm of the step with which it has so many bits; the nearest that there may be.
double StepOfLaplacian(double bits) {
  constexpr int kHalvings = 40;
  double finer = kFinest, coarser = kCoarsest;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (finer + coarser) / 2;
    (LaplacianBits(std::exp2(middle)) > bits ? finer : coarser) = middle;
  }
  return coarser;
}

// Looks for the step with which a message takes its rate. Steps and rates are logarithms to base 2.
class StepSearch {
 public:
  explicit StepSearch(double rate) : rate_(std::log2(rate)) {}

  double step() const { return step_; }
  double best() const { return best_; }

  // What a message with step() took: a finer one takes more. False if step() is at an end of what
  // there is and does not change.
  bool Next(double met) {
    if (std::fabs(met - rate_) < std::fabs(best_met_ - rate_)) best_ = step_, best_met_ = met;
    (met > rate_ ? finer_ : coarser_) = step_;
    const double next = Guess(met);
    step_before_ = step_;
    met_before_ = met;
    step_ = std::clamp(next, kFinest, kCoarsest);
    return step_ != step_before_;
  }

 private:
  static constexpr double kFarthest = 3;  // from one step to the next

  double Guess(double met) const {
    const double slope = (met - met_before_) / (step_ - step_before_);
    double guess = step_ + (rate_ - met) / slope;
    // The first time: the source takes as many times what a Laplacian one does as it did.
    if (std::isnan(slope)) {
      guess = StepOfLaplacian(LaplacianBits(std::exp2(step_)) * std::exp2(rate_ - met));
    } else if (!(slope < 0)) {
      guess = step_ + (met > rate_ ? 1 : -1);
    }
    guess = std::clamp(guess, step_ - kFarthest, step_ + kFarthest);
    const bool is_inside = guess > finer_ && guess < coarser_;
    return is_inside ? guess : (finer_ + coarser_) / 2;
  }

  const double rate_;
  double step_ = StepOfLaplacian(std::exp2(rate_));
  double step_before_ = NAN, met_before_ = NAN;
  double best_ = NAN, best_met_ = INFINITY;
  double finer_ = 2 * kFinest, coarser_ = 2 * kCoarsest;  // than what is wanted
};

class RatedCodec final : public Codec {
 public:
  // `longest`: the codec of the least step, which reads what any step wrote.
  RatedCodec(const CodecSpec& spec, std::unique_ptr<Codec> longest, CodecKernels* kernels)
      : Codec(spec), longest_(std::move(longest)), kernels_(kernels) {}

  size_t MaxPayloadBytes(const Shape& shape, DType dtype) const override {
    return longest_->MaxPayloadBytes(shape, dtype);
  }

  absl::StatusOr<size_t> Encode(const Tensor& x, const MessageContext& context,
                                absl::Span<uint8_t> payload) const override {
    const auto elements = static_cast<double>(x.elements());
    StepSearch search(spec().rate);
    for (int tries = 0; tries < kMostTries; ++tries) {
      ASSIGN_OR_RETURN(const size_t bytes, EncodeAtStep(search.step(), x, context, payload));
      const double met = 8 * static_cast<double>(bytes) / elements;
      if (x.elements() == 0 || std::fabs(met / spec().rate - 1) <= kRateTolerance) return bytes;
      if (!search.Next(std::log2(met))) break;
    }
    return EncodeAtStep(search.best(), x, context, payload);
  }

  absl::Status Decode(absl::Span<const uint8_t> payload, const MessageContext& context,
                      Tensor* x) const override {
    return longest_->Decode(payload, context, x);
  }

 private:
  absl::StatusOr<size_t> EncodeAtStep(double log_step, const Tensor& x,
                                      const MessageContext& context,
                                      absl::Span<uint8_t> payload) const {
    ASSIGN_OR_RETURN(const auto codec, NewCodec(AtStep(spec(), std::exp2(log_step)), kernels_));
    return codec->Encode(x, context, payload);
  }

  const std::unique_ptr<Codec> longest_;
  CodecKernels* const kernels_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Codec>> NewRatedCodec(const CodecSpec& spec, CodecKernels* kernels) {
  ASSIGN_OR_RETURN(auto longest, NewCodec(AtStep(spec, kLeastStep), kernels));
  return std::make_unique<RatedCodec>(spec, std::move(longest), kernels);
}

}  // namespace thinwire
