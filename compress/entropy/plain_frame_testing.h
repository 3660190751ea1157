// Frames without neighbours in any number of parts, also those that the encoder does not make.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compress/entropy/frequencies.h"
#include "compress/entropy/layout.h"

namespace thinwire {

// Returns the frame of a string in parts, from 1 to the number of its rows. With no parts the frame
// is one of form 0, that is, of a single string.
inline std::vector<uint8_t> PlainFrameInParts(const std::vector<uint8_t>& bytes, size_t num_parts) {
  EntropyHead head;
  head.num_bytes = head.count = bytes.size();
  head.is_in_parts = num_parts > 0;
  if (head.is_in_parts) head.layout.num_parts = num_parts;
  EntropyTables tables;
  ChooseTables({CountsOf(bytes)}, &head, &tables);
  std::vector<uint8_t> frame(head.head_bytes() + kMaxTableBytes);
  frame.resize(static_cast<size_t>(WriteTables(head, tables, WriteEntropyHead(head, frame.data())) -
                                   frame.data()));
  std::vector<uint8_t> strings, room(RansBytes(bytes.size()));
  for (size_t part = 0; part < head.layout.num_parts; ++part) {
    const size_t begin = head.PartBegin(part);
    const RansSource source = {bytes.data() + begin, head.PartBegin(part + 1) - begin, nullptr,
                               room.data() + room.size()};
    uint8_t* from = nullptr;
    RansEncode(&source, 1, tables.of_context.data(), 1, &from);
    const uint8_t* const end = source.end;
    const auto length = static_cast<uint32_t>(end - from);
    for (int bits = 0; head.is_in_parts && bits < 32; bits += 8) {
      frame.push_back(static_cast<uint8_t>(length >> bits));
    }
    strings.insert(strings.end(), static_cast<const uint8_t*>(from), end);
  }
  frame.insert(frame.end(), strings.begin(), strings.end());
  return frame;
}

}  // namespace thinwire
