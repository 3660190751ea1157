#include <algorithm>
#include <cstdint>

#include "nn/cpu/kernels.h"

namespace thinwire::cpu {

Error Kernels::CountPositions(const TensorView& ids, int32_t pad, int32_t* lengths) {
  const int64_t positions = ids.dims[1];
  for (int64_t sample = 0; sample < ids.dims[0]; ++sample) {
    const int32_t* const of_sample = static_cast<const int32_t*>(ids.data) + sample * positions;
    int64_t length = positions;
    while (length > 1 && of_sample[length - 1] == pad) --length;
    lengths[sample] = static_cast<int32_t>(length);
  }
  return Error{};
}

Error Kernels::TokenTypes(const TensorView& ids, int32_t separator, const TensorView& types) {
  const int64_t positions = ids.dims[1];
  for (int64_t sample = 0; sample < ids.dims[0]; ++sample) {
    const int32_t* const begin = static_cast<const int32_t*>(ids.data) + sample * positions;
    const int32_t* const end = begin + positions;
    int32_t* const of_sample = static_cast<int32_t*>(types.data) + sample * positions;
    std::fill_n(of_sample, positions, 0);
    const int32_t* const first = std::find(begin, end, separator);
    const int32_t* const second = first == end ? end : std::find(first + 1, end, separator);
    if (second != end)
      std::fill(of_sample + (first + 1 - begin), of_sample + (second + 1 - begin), 1);
  }
  return Error{};
}

}  // namespace thinwire::cpu
