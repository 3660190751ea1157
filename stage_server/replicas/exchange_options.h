// Settings from which averager, coder and local replicas of a stage are made.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "compress/kernels.h"
#include "config/replicas_spec.h"
#include "nn/ops.h"
#include "stage_server/boundary/patience.h"
#include "tensor/device.h"

namespace thinwire {

// All pointers outlive what is made.
struct ExchangeOptions {
  ReplicasSpec replicas;
  std::map<std::string, int> fragments;  // of parameters, by name (FragmentsOf)
  int carrier = 0, carriers = 1;
  Deal deal;               // of the replicas to the carriers
  bool counts_all = true;  // false: only what single tensor-parallel parts have is counted
  std::shared_ptr<Patience> patience;  // bounds waits for peers
  uint64_t run = 0, generation = 0;    // as in frames, whose bytes are counted
  uint64_t codec_seed = 0;
  std::string tied;         // name of the weight that has a copy; empty: none
  int64_t error_every = 0;  // measures distortion on every n-th step; 0: never
  Device* device = nullptr;
  Ops* ops = nullptr;
  CodecKernels* kernels = nullptr;

  // Returns the replicas of a carrier.
  ReplicaRange CarriedBy(int of_carrier) const {
    return thinwire::CarriedBy(of_carrier, carriers, replicas.count, deal);
  }
  // Returns those that are here.
  ReplicaRange carried() const { return CarriedBy(carrier); }
};

}  // namespace thinwire
