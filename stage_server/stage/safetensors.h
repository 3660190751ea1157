// Parameters as a safetensors file (base/safetensors.h) and back, under the names and in the
// layouts of models/file_tensors.h. Written in fp32.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/safetensors.h"
#include "models/file_tensors.h"
#include "nn/segment/segment.h"

namespace thinwire {

// Hands the file to `sink` in pieces of at most `piece_bytes`, in order; stops at its first error.
absl::Status WriteParameters(const std::vector<const Parameter*>& parameters, size_t piece_bytes,
                             const std::function<absl::Status(std::string_view)>& sink);

// The same for the gradients of those that are trained, as they are and under the parameters'
// names; that of a tied copy is left out.
absl::Status WriteGradients(const std::vector<const Parameter*>& parameters, size_t piece_bytes,
                            const std::function<absl::Status(std::string_view)>& sink);

// Overwrites parameters with the tensors of a file that comes in pieces. One tensor is in host
// memory at a time: until the file is whole, values lie where the gradients do.
//
// Errors: InvalidArgument names a tensor that is missing or left over, whose shape differs, or that
// is not of F32, F16 or BF16; DataLoss says what makes it no safetensors file. No value has been
// written then.
class ParameterReader {
 public:
  // The parameters outlive the reader. Their gradients are anything from the first Append on:
  // clearing them is the caller's duty.
  explicit ParameterReader(const std::vector<const Parameter*>& parameters);

  ParameterReader(const ParameterReader&) = delete;
  ParameterReader& operator=(const ParameterReader&) = delete;

  // The next bytes of the file.
  absl::Status Append(std::string_view piece);

  // Writes the values, after the last Append. The segments' ParametersChanged is the caller's duty.
  absl::Status Finish();

 private:
  // Where a parameter's new values wait.
  struct Target {
    const Parameter* parameter = nullptr;
    std::vector<float> values;  // of one without gradient
  };
  // A tensor of the file that is wanted for a target; for two, if they are tied.
  struct Wanted {
    Target* target = nullptr;
    FileTensor tensor;
  };

  absl::Status PartCame();
  absl::Status HeaderCame();
  absl::Status TensorCame();
  void AwaitNextTensor();
  uint64_t MostBytes() const;

  std::vector<Target> targets_;
  std::multimap<std::string, Wanted> wanted_;  // by name in the file

  enum class Part { kLength, kHeader, kTensors, kNothing };
  Part part_ = Part::kLength;  // that is coming
  std::string bytes_;          // of it, or of its tensor
  uint64_t want_bytes_ = kSafetensorsLengthBytes;
  std::vector<TensorPlace> tensors_;  // of the header
  size_t next_tensor_ = 0;
};

}  // namespace thinwire
