// Codec under test, with the messages that it is tested on. Private to conformance.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compress/codec.h"
#include "compress/support.h"

namespace thinwire {

// Message to test with: a tensor and, for codecs that use them, the received activation's
// non-zeros.
struct TrialMessage {
  std::string name;  // "zeros [2, 5, 7]"
  Tensor x;
  SupportMap support;
};

// One codec, and what the checks do with it.
class ConformanceSubject {
 public:
  // Makes the codec and finds shapes that it takes. Returns an error if there is no such codec or
  // it refuses all shapes.
  static absl::StatusOr<std::shared_ptr<ConformanceSubject>> New(const CodecSpec& spec,
                                                                 CodecKernels* kernels);

  const CodecSpec& spec() const { return codec_->spec(); }
  const Codec& codec() const { return *codec_; }
  CodecKernels* kernels() const { return kernels_; }

  // Returns the common shapes that the codec accepts, smallest first; at least one.
  const std::vector<Shape>& shapes() const { return shapes_; }

  // Makes a message whose element i is value(i).
  absl::StatusOr<TrialMessage> Make(const std::string& name, const Shape& shape,
                                    const std::function<float(int64_t)>& value) const;
  // Makes a message of nearly normally distributed values; with `relu`, half of them are zero.
  absl::StatusOr<TrialMessage> Random(const Shape& shape, bool relu) const;

  // Encodes a message. Also returns an error if the payload is longer than the codec's bound or if
  // bytes behind it were written.
  absl::StatusOr<std::vector<uint8_t>> Encode(const TrialMessage& m, uint64_t key = 1) const;
  // Decodes into memory that was filled with bytes `fill`.
  absl::StatusOr<Tensor> Decode(absl::Span<const uint8_t> payload, const TrialMessage& m,
                                uint8_t fill = 0xFF) const;
  // Decodes twice, into memory with different contents. Returns an Internal error if the results
  // differ.
  absl::StatusOr<Tensor> DecodeOverAnything(absl::Span<const uint8_t> payload,
                                            const TrialMessage& m) const;

 private:
  ConformanceSubject(std::unique_ptr<Codec> codec, CodecKernels* kernels)
      : codec_(std::move(codec)), kernels_(kernels) {}
  MessageContext ContextOf(const TrialMessage& m, uint64_t key) const;

  std::unique_ptr<Codec> codec_;
  CodecKernels* kernels_;
  std::vector<Shape> shapes_;
};

}  // namespace thinwire
