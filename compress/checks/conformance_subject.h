// One codec under test with messages of its own making. Private to conformance.cc.
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

// A tensor, and the received activation's non-zeros for codecs that use them.
struct TrialMessage {
  std::string name;  // "zeros [2, 5, 7]"
  Tensor x;
  SupportMap support;
};

class ConformanceSubject {
 public:
  static absl::StatusOr<std::shared_ptr<ConformanceSubject>> New(const CodecSpec& spec,
                                                                 CodecKernels* kernels);

  const CodecSpec& spec() const { return codec_->spec(); }
  const Codec& codec() const { return *codec_; }
  CodecKernels* kernels() const { return kernels_; }

  // Shapes among some common ones that the codec takes, smallest first; at least one.
  const std::vector<Shape>& shapes() const { return shapes_; }

  // value(i) is element i.
  absl::StatusOr<TrialMessage> Make(const std::string& name, const Shape& shape,
                                    const std::function<float(int64_t)>& value) const;
  // About normal; with `relu`, half of them zero.
  absl::StatusOr<TrialMessage> Random(const Shape& shape, bool relu) const;

  // Also an error: a payload longer than the bound, or bytes written behind it.
  absl::StatusOr<std::vector<uint8_t>> Encode(const TrialMessage& m, uint64_t key = 1) const;
  // Decoded into memory full of `fill` bytes.
  absl::StatusOr<Tensor> Decode(absl::Span<const uint8_t> payload, const TrialMessage& m,
                                uint8_t fill = 0xFF) const;
  // Decoded twice, over different bytes; an Internal error if that shows.
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
