// `thinwire codecs --measure`: what codecs make of given tensors, and how fast.
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

// One codec on one group of tensors. Rates are of the tensors' own bytes, on one thread, from the
// medians of all rounds. Errors are of the group as one vector.
struct CodecMeasurement {
  std::string codec;  // as CodecText spells it
  std::string group;
  std::string refused;  // why the codec does not take these tensors; then nothing else counts
  double wire_bits_per_element = 0;
  double relative_error = 0;
  double cosine = 0;
  double encode_bytes_per_second = 0;
  double decode_bytes_per_second = 0;
  // Rates as fractions of memcpy's on the same bytes in the same rounds.
  double encode_of_memcpy = 0;
  double decode_of_memcpy = 0;
  double break_even_bits_per_second = 0;  // see BreakEvenBitsPerSecond
};

struct MeasureOptions {
  int rounds = 30;
  double seconds = 60;            // no further round begins after that
  std::function<bool()> stopped;  // asked between rounds; may be empty
};

struct Measurements {
  int rounds = 0;
  std::vector<CodecMeasurement> rows;  // by group, then in the order of the codecs
};

// The codecs that people compare, in about 30 variants.
std::vector<std::string> StandardCodecs();

// Every round copies, encodes and decodes each tensor once with every codec in turn. low_rank is
// started from its own payload of the same tensor, and rotation principal is into axes that this
// tensor has sent before. Codecs that need a received activation take that of the same name, as if
// it had come exactly, and their errors are of the entries that it supports; without one they are
// refused.
absl::StatusOr<Measurements> MeasureCodecs(const std::vector<CodecSpec>& codecs,
                                           const std::vector<SampleTensor>& tensors,
                                           const MeasureOptions& options);

std::string FormatMeasurements(const Measurements& measurements, TextFormat format);

}  // namespace thinwire
