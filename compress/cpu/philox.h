// Random numbers of base/random.h, many at once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thinwire {

// Sets numbers[i] to the (first + i)-th number of RandomStream(key). Requires first % 4 == 0.
// `numbers` has memory for n rounded up to 64.
void PhiloxNumbers(uint64_t key, uint64_t first, size_t n, uint32_t* numbers);

}  // namespace thinwire
