#include "compress/cpu/entries_header.h"

#include "compress/bytes.h"
#include "compress/half.h"
#include "compress/refusals.h"

namespace thinwire {

Error CheckElements(const CodecSpec& spec, int64_t total) {
  if (total <= kSparseMaxElements) return Error{};
  return MakeError(kRefused, "%s: %lld elements, want at most %lld", Name(spec.kind),
                   static_cast<long long>(total), static_cast<long long>(kSparseMaxElements));
}

Error CheckHeaderBytes(const CodecSpec& spec, size_t bytes, size_t want) {
  if (bytes >= want) return Error{};
  return MakeError(kRefused, "%s: payload of %zu bytes, want at least %zu", Name(spec.kind), bytes,
                   want);
}

Error ReadEntriesHeader(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                        const Scopes& scopes, EntriesHeader* header) {
  RETURN_ERROR(CheckHeaderBytes(spec, bytes, kEntriesHeaderBytes));
  const EntriesHeader h = LoadAs<EntriesHeader>(payload);
  const uint64_t most = MostEntries(spec, scopes);
  const bool exact = spec.pad == Pad::kExactK;
  if (h.count > most || (exact && h.count != most)) {
    return MakeError(kRefused, "%s: %u entries, want %s%llu", Name(spec.kind), h.count,
                     exact ? "" : "at most ", static_cast<unsigned long long>(most));
  }
  if (bytes < kEntriesHeaderBytes + ValueBytes(spec, h.count)) {
    return MakeError(kRefused, "%s: payload of %zu bytes, want room for %u values", Name(spec.kind),
                     bytes, h.count);
  }
  if (h.coding > static_cast<uint8_t>(IndexCoding::kRice)) {
    return MakeError(kRefused, "%s: index coding %d, want 0 to 2", Name(spec.kind), h.coding);
  }
  const bool is_rice = h.coding == static_cast<uint8_t>(IndexCoding::kRice);
  if (h.rice_bits > (is_rice ? kMaxRiceBits : 0)) {
    return MakeError(kRefused, "%s: %d remainder bits with index coding %d", Name(spec.kind),
                     h.rice_bits, h.coding);
  }
  *header = h;
  return Error{};
}

Error CheckValueExponent(const CodecSpec& spec, int exponent) {
  const bool is_half = spec.values == Values::kF16;
  const int least = is_half ? kLeastPreScale : 0, most = is_half ? kMostPreScale : 0;
  if (least <= exponent && exponent <= most) return Error{};
  return MakeError(kRefused, "%s: pre-scale exponent %d of %s values", Name(spec.kind), exponent,
                   Name(spec.values));
}

Error OverflowOfProduct() {
  return MakeError(kRefused, "randomk: a value times n / K overflows, want values that fp32 holds");
}

}  // namespace thinwire
