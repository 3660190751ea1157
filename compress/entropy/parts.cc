#include "compress/entropy/parts.h"

#include <algorithm>

#include "compress/bytes.h"
#include "compress/entropy/stretches.h"
#include "compress/scratch.h"

namespace thinwire {

uint8_t* WriteParts(const StringInParts& string, uint8_t* lengths, uint8_t* to) {
  static thread_local Scratch<uint8_t> memory;
  const size_t num_rows = NumRows(string.bytes.size());
  const RowLayout layout = {string.num_parts};
  const auto begin_of = [&](size_t part) {
    return std::min(layout.PartBegin(num_rows, part) * kStates, string.bytes.size());
  };
  const size_t together = std::min(kRansTogether, string.num_parts);
  const size_t room = RansBytes((num_rows / string.num_parts + 1) * kStates);
  uint8_t* const rooms = memory.Get(together * room);
  RansSource sources[kRansTogether];
  uint8_t* begins[kRansTogether];
  for (size_t first = 0; first < string.num_parts; first += together) {
    const size_t count = std::min(together, string.num_parts - first);
    for (size_t k = 0; k < count; ++k) {
      const size_t begin = begin_of(first + k);
      sources[k] = {string.bytes.data() + begin, begin_of(first + k + 1) - begin,
                    string.contexts == nullptr ? nullptr : string.contexts + begin,
                    rooms + (k + 1) * room};
    }
    RansEncode(sources, count, string.tables, string.num_tables, begins);
    for (size_t k = 0; k < count; ++k) {
      if (lengths != nullptr) {
        StoreAs(static_cast<uint32_t>(sources[k].end - begins[k]), lengths);
        lengths += sizeof(uint32_t);
      }
      to = std::copy(begins[k], sources[k].end, to);
    }
  }
  return to;
}

}  // namespace thinwire
