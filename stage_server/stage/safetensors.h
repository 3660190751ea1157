// Reads and writes parameters as a safetensors file (base/safetensors.h), with the names and
// layouts of models/file_tensors.h. Values are written in fp32.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/safetensors.h"
#include "models/file_tensors.h"
#include "nn/segment/segment.h"

namespace thinwire {

// Returns the bytes of the file that WriteParameters writes.
uint64_t ParameterFileBytes(const std::vector<const Parameter*>& parameters);

// Writes the file to `sink` in order, in pieces of at most `piece_bytes`. Stops at the first error
// of `sink`.
absl::Status WriteParameters(const std::vector<const Parameter*>& parameters, size_t piece_bytes,
                             const std::function<absl::Status(std::string_view)>& sink);

// Writes the gradients of trained parameters under the parameters' names. That of a tied copy is
// left out.
absl::Status WriteGradients(const std::vector<const Parameter*>& parameters, size_t piece_bytes,
                            const std::function<absl::Status(std::string_view)>& sink);

// Overwrites parameters with the tensors of a file that comes in pieces. Only one tensor is in host
// memory at a time: until the file is complete, values wait in the memory of the gradients. Frozen
// parameters, which have no such memory, are overwritten as they come; those in few bits are
// quantised then.
//
// Errors: InvalidArgument names a tensor that is missing or left over, has another shape, or is
// none of F32, F16 and BF16, or that is to be held in few bits and is not finite. DataLoss says
// what is wrong with the file. Nothing has been written then, but frozen parameters if the file
// ends early or has bytes left over.
class ParameterReader {
 public:
  // Makes a reader; the parameters outlive it. The first Append makes their gradients undefined,
  // and the caller must clear them. Tensors of `others`, parameters of tensor-parallel parts
  // elsewhere, may be in the file too.
  explicit ParameterReader(const std::vector<const Parameter*>& parameters,
                           const std::vector<ParameterSpec>& others = {});

  ParameterReader(const ParameterReader&) = delete;
  ParameterReader& operator=(const ParameterReader&) = delete;

  // Takes the next bytes of the file.
  absl::Status Append(std::string_view piece);

  // Writes the values, after the last Append. The caller must then call the segments'
  // ParametersChanged.
  absl::Status Finish();

 private:
  // Place where a parameter's new values come to.
  struct Target {
    const Parameter* parameter = nullptr;
    std::vector<float> values;  // used if there is no such tensor

    // Returns whether values are written as they come.
    bool is_frozen() const { return parameter->spec.role == ParameterSpec::Role::kFrozen; }
    bool has_gradient() const { return !parameter->gradient.empty(); }
  };
  // A tensor of the file and the target that wants it. Two targets if they are tied.
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
  std::set<std::string> of_others_;            // names in the file

  enum class Part { kLength, kHeader, kTensors, kNothing };
  Part part_ = Part::kLength;  // the part that is expected
  std::string bytes_;          // what has come of it, or of its tensor
  uint64_t want_bytes_ = kSafetensorsLengthBytes;
  std::vector<TensorPlace> tensors_;  // from the header
  size_t next_tensor_ = 0;
};

}  // namespace thinwire
