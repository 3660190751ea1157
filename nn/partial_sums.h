// How the results of a layer's tensor-parallel parts are added up (models/parts.h), and how slices
// of positions are brought together: in memory, or through codecs and with parts on other machines.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/position_slices.h"
#include "tensor/tensor.h"

namespace thinwire {

enum class PassDirection { kForward, kBackward };

// Passes call these in the order of their layers, which are called by their names. In the forward
// pass they are about what layers make of their input, in the backward pass about its gradient.
// Errors are those of sending and receiving.
class PartialSums {
 public:
  virtual ~PartialSums() = default;

  // Returns the sum of what all parts have made, in ascending order of parts, in memory that nobody
  // else holds. `partials` are those of the parts in this segment.
  virtual absl::StatusOr<Tensor> Add(PassDirection direction, const std::string& layer,
                                     std::vector<Tensor> partials) = 0;

  // Returns of that sum the rows of the slices that are here, likewise.
  virtual absl::StatusOr<Tensor> Scatter(PassDirection direction, const std::string& layer,
                                         const PositionSlices& slices,
                                         std::vector<Tensor> partials) = 0;

  // Returns the whole samples [samples, positions, features] of which `rows` are those of the
  // slices that are here, likewise.
  virtual absl::StatusOr<Tensor> Gather(PassDirection direction, const std::string& layer,
                                        const PositionSlices& slices, Tensor rows) = 0;
};

}  // namespace thinwire
