// Both ends of a compensated direction, for tests: what the sender encodes, the receiver decodes.
#pragma once

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compress/codecs/round_trip_testing.h"
#include "compress/feedback/feedback.h"
#include "tensor/copy_testing.h"

namespace thinwire {

using Rows = std::vector<uint64_t>;

// Samples that tests send when contents do not matter: 96 random numbers each.
inline constexpr int kSampleElements = 96;
inline const Shape kSampleShape = {1, 6, 16};

inline Tensor RandomMessage(int batch, uint64_t seed, DType dtype = DType::kF32) {
  const std::vector<float> values = RandomValues(batch * kSampleElements, seed);
  const Shape shape = kSampleShape.WithBatch(batch);
  if (dtype == DType::kF32) return TensorOf(shape, values);
  return BFloatTensorOf(shape, values);  // cut to bf16
}

// A sender and a receiver with the same options.
struct FeedbackPair {
  explicit FeedbackPair(const FeedbackOptions& options) : options(options) {
    sender = std::move(*FeedbackSender::New(options));
    receiver = std::move(*FeedbackReceiver::New(options));
  }

  // Sends `x` and decodes it. `outgoing` gives all but x and rows. What was sent is in `encoded`
  // and `payload`, also if the receiver refuses it.
  absl::StatusOr<Tensor> Send(const Codec& codec, const Tensor& x, const Rows& rows,
                              FeedbackSender::Outgoing outgoing = {}) {
    outgoing.x = &x;
    outgoing.rows = rows;
    payload.resize(FeedbackMaxPayloadBytes(options.spec, codec, x.shape(), options.compute));
    ASSIGN_OR_RETURN(encoded, sender->Encode(codec, outgoing, absl::MakeSpan(payload)));
    payload.resize(encoded.bytes);
    FeedbackReceiver::Incoming incoming;
    incoming.payload = payload;
    incoming.shape = x.shape();
    incoming.rows = rows;
    incoming.exact = encoded.exact;
    incoming.first_visit = encoded.first_visit;
    incoming.state_digest = encoded.state_digest;
    incoming.frozen = outgoing.frozen;
    incoming.calibrates = outgoing.calibrates;
    incoming.step = outgoing.step;
    return receiver->Decode(codec, incoming);
  }

  FeedbackOptions options;
  std::unique_ptr<FeedbackSender> sender;
  std::unique_ptr<FeedbackReceiver> receiver;
  FeedbackSender::Encoded encoded;
  std::vector<uint8_t> payload;
};

inline FeedbackOptions FeedbackOptionsOf(const FeedbackSpec& spec, const Shape& sample,
                                         DType compute = DType::kF32) {
  FeedbackOptions options;
  options.spec = spec;
  options.sample = sample;
  options.compute = compute;
  options.device = CpuDevice();
  options.kernels = CpuCodecKernels();
  return options;
}

inline FeedbackSpec SpecOf(FeedbackKind kind, StateInit init = StateInit::kZero) {
  FeedbackSpec spec;
  spec.kind = kind;
  spec.init = init;
  return spec;
}

inline CodecSpec TopKOf(double ratio) {
  CodecSpec spec;
  spec.kind = CodecKind::kTopK;
  spec.ratio = ratio;
  return spec;
}

inline CodecSpec UniformOf(uint32_t bits, Rounding rounding = Rounding::kNearest) {
  CodecSpec spec;
  spec.kind = CodecKind::kUniform;
  spec.bits = bits;
  spec.rounding = rounding;
  return spec;
}

// Returns all stored bytes, by row.
inline std::vector<std::vector<uint8_t>> StoredRows(StateStore* store) {
  std::vector<std::vector<uint8_t>> rows;
  for (size_t row = 0; row < store->keys().size(); ++row) {
    rows.emplace_back(store->row_bytes());
    if (!store->ReadStored(row, absl::MakeSpan(rows.back())).ok()) rows.back().clear();
  }
  return rows;
}

// Returns dense and sparse codecs, with and without random numbers.
inline std::vector<CodecSpec> SomeCodecs() {
  CodecSpec fp16;
  fp16.kind = CodecKind::kFp16;
  return {UniformOf(4), UniformOf(4, Rounding::kStochastic), TopKOf(0.1), fp16};
}

}  // namespace thinwire
