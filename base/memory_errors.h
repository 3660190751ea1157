// Lack of memory as a Status, where the size of what is allocated is another's choice.
#pragma once

#include <new>
#include <stdexcept>

#include "absl/status/status.h"

namespace thinwire {

// What `task` returns, a Status or a StatusOr. Tensors report that there is no memory for them;
// this is for the vectors and strings beside them: ResourceExhausted.
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
