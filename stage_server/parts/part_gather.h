// Brings together, as they are, numbers that only single tensor-parallel parts have: squares of
// gradients, and gradients of slices of positions, at all machines that carry parts of the same
// replicas, parameters at the first of them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "config/replicas_spec.h"
#include "models/model.h"
#include "nn/ops.h"
#include "nn/parameters.h"
#include "stage_server/boundary/peers.h"
#include "wire/message.h"

namespace thinwire {

// All machines of a row make the same calls in the same order, as each waits for the others. Not
// thread-safe.
class PartGather {
 public:
  // `peers` outlives the object.
  PartGather(int parts, CarrierPeers* peers) : parts_(parts), peers_(peers) {}

  // Returns a number of each of `parameters`, which all parts together have, in their order. `own`
  // has those of the parameters here, by name.
  absl::StatusOr<std::vector<double>> All(const MessageKey& key,
                                          const std::vector<ParameterSpec>& parameters,
                                          const std::map<std::string, double>& own);

  // Sets the gradients that are of slices to their sums over all slices, in ascending order, and
  // clears those. Returns the message of each part that is here; none if nothing is of slices.
  // key.cut is the number of the parameters' segment.
  absl::StatusOr<std::vector<MessageHeader>> AddSlices(const MessageKey& key,
                                                       absl::Span<Parameter> parameters, Ops* ops);

  // Adds to `tensors`, which are some of `parameters` or what is remembered of these, those of the
  // parts elsewhere, in the host's memory. At all machines but the first it sends what is here and
  // empties `tensors`.
  absl::Status ToFirst(const std::vector<ParameterSpec>& parameters,
                       std::vector<Parameter>* tensors);

 private:
  ReplicaRange CarriedAt(int place) const { return CarriedBy(place, peers_->carriers(), parts_); }
  bool IsAt(int place, const ParameterSpec& parameter) const {
    return parameter.slice.is_of_part() && CarriedAt(place).has(parameter.slice.part);
  }
  // Returns the sum of numbers of all parts, of which `own` are those of the parts here.
  absl::StatusOr<std::vector<float>> SumOfParts(const std::vector<Message>& own);
  absl::Status SendAll(const std::vector<Parameter>& tensors) const;
  absl::StatusOr<Parameter> Receive(const ParameterSpec& spec, uint32_t number, Device* host);

  uint64_t round_ = 0;  // number of calls of ToFirst, alike at all machines
  const int parts_;
  CarrierPeers* const peers_;
};

}  // namespace thinwire
