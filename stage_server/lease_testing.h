// Leases for tests: all have the same secret.
#pragma once

#include <cstdint>
#include <string>

#include "proto/stage.pb.h"

namespace thinwire {

inline Lease LeaseOf(const std::string& run, uint64_t generation = 1) {
  Lease lease;
  lease.set_run(run);
  lease.set_generation(generation);
  lease.set_secret("what this test knows");
  return lease;
}

}  // namespace thinwire
