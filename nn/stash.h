// How the tensors that a block keeps are put away between its forward and its backward pass, and
// made again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nn/pass.h"

namespace thinwire {

// Called in the order of the blocks that run, on the thread that runs them.
class Stash {
 public:
  virtual ~Stash() = default;

  // Puts the tensors of one forward pass of `block` away. Equal tensors and passes give equal
  // results, whatever else the stash holds.
  virtual absl::StatusOr<std::shared_ptr<StashedTensors>> Put(const std::string& block,
                                                              const Pass& pass,
                                                              std::vector<KeptTensor> tensors) = 0;

  // Makes what Put got, in its order, with all that is needed of each. `stashed` is what this
  // stash's Put returned; it is of no use afterwards.
  virtual absl::StatusOr<std::vector<KeptTensor>> Take(const std::string& block,
                                                       StashedTensors* stashed) = 0;
};

}  // namespace thinwire
