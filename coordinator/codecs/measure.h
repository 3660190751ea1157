// Output of `thinwire codecs --measure`: what codecs do to given tensors, and how fast.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compress/spec.h"
#include "coordinator/codecs/list.h"
#include "tensor/tensor.h"

namespace thinwire {

// A boundary tensor in host memory. Tensors of one group share a row per codec.
struct SampleTensor {
  std::string name;   // "layer1/activation/step1"
  std::string group;  // "activation"
  Tensor x;
};

// Result of one codec on one group of tensors. Rates count the bytes of the uncompressed tensors,
// on one thread, and come from the medians of all rounds. Errors are those of the group as one
// vector.
struct CodecMeasurement {
  std::string codec;  // as CodecText writes it
  std::string group;
  // Reason why the codec refuses these tensors; then the other fields mean nothing.
  std::string refused;
  double wire_bits_per_element = 0;
  double relative_error = 0;
  double cosine = 0;
  double encode_bytes_per_second = 0;
  double decode_bytes_per_second = 0;
  // Rates divided by memcpy's on the same bytes in the same rounds.
  double encode_of_memcpy = 0;
  double decode_of_memcpy = 0;
  double break_even_bits_per_second = 0;  // see BreakEvenBitsPerSecond
};

struct MeasureOptions {
  int rounds = 30;
  double seconds = 60;            // after this time no further round begins
  std::function<bool()> stopped;  // called between rounds; may be empty
};

struct Measurements {
  int rounds = 0;
  std::vector<CodecMeasurement> rows;  // by group, then in the order of the codecs
};

// Returns the texts of common codecs, in about 30 variants.
std::vector<std::string> StandardCodecs();

// Measures `codecs` on `tensors`. Every round copies, encodes and decodes each tensor once with
// each codec in turn. low_rank starts from its own payload of the same tensor; rotation principal
// uses axes that were computed from this tensor before. Codecs that need a received activation get
// the one of the same name, as if it had arrived exactly. Their errors count only the entries that
// it supports; without one they are refused.
absl::StatusOr<Measurements> MeasureCodecs(const std::vector<CodecSpec>& codecs,
                                           const std::vector<SampleTensor>& tensors,
                                           const MeasureOptions& options);

// Returns the measurements as tables or as JSON.
std::string FormatMeasurements(const Measurements& measurements, TextFormat format);

}  // namespace thinwire
