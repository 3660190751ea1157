#include "compress/cpu/sparse_writer.h"

#include <algorithm>

#include "compress/cpu/parallel.h"

namespace thinwire {

Error WriteSparse(const uint32_t* positions, size_t count, const ValueReader& values, int threads,
                  const TensorView& x) {
  const auto entry_at = [&](int64_t element) {
    return std::lower_bound(positions, positions + count, element) - positions;
  };
  return TryEachPart(Parts(x.elements(), threads), [&](int, int64_t begin, int64_t end) {
    const size_t first = entry_at(begin), last = entry_at(end);
    ValueReader of_part = values;
    of_part.Skip(first);
    SparseWriter writer(x, begin, end);
    float floats[kEntriesAtOnce];
    for (size_t done = first; done < last; done += kEntriesAtOnce) {
      const size_t n = std::min(kEntriesAtOnce, last - done);
      RETURN_ERROR(of_part.Read(n, floats));
      writer.Write(positions + done, floats, n);
    }
    writer.Finish();
    return Error{};
  });
}

}  // namespace thinwire
