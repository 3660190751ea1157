// Lack of memory as a Status, for allocations whose size somebody else chooses.
#pragma once

#include <new>
#include <stdexcept>

#include "absl/status/status.h"

namespace thinwire {

// Returns the result of `task`, a Status or a StatusOr; ResourceExhausted if vectors or strings get
// no memory. Tensors report lack of memory by themselves.
template <typename Task>
auto MemoryErrorsAsStatus(const Task& task) -> decltype(task()) {
  try {
    return task();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("there is not enough memory for what is asked");
  } catch (const std::length_error&) {
    return absl::ResourceExhaustedError("what is asked takes more memory than there can be");
  }
}

}  // namespace thinwire
