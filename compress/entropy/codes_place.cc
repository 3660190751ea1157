#include "compress/entropy/codes_place.h"

#include "compress/codec_table.h"

namespace thinwire {

// Codes are likely to resemble those of the channels before, and those of the same channel at the
// positions before, beside and above. With a support, whose entries' positions vary, they resemble
// those just before.
CodesPlace CodesOf(const CodecSpec& spec, const Shape& coded) {
  const CodecRow& row = CodecRowOf(spec.kind);
  if (row.codes_begin == nullptr || coded.elements() == 0) return {};
  CodesPlace place{row.codes_begin(spec, coded), static_cast<size_t>(coded.elements()), {}};
  const auto add = [&](int64_t distance) {
    if (0 < distance && distance < coded.elements()) {
      place.distances.push_back(static_cast<uint32_t>(distance));
    }
  };
  if (spec.needs_support()) {
    for (const int64_t distance : {1, 2, 3, 4, 6, 8}) add(distance);
    return place;
  }
  if (coded.rank() == 0) return place;  // one code has no neighbour
  const int64_t left = coded[coded.rank() - 1];
  for (const int64_t distance : {int64_t{1}, int64_t{2}, left, 2 * left, 4 * left}) add(distance);
  if (coded.rank() < 4) return place;
  const int64_t up = left * coded[coded.rank() - 2];
  for (const int64_t distance : {up, 2 * up, up - left, up + left}) add(distance);
  return place;
}

}  // namespace thinwire
