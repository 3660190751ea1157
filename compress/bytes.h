// Little-endian numbers at any address. Thinwire runs on little-endian machines only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace thinwire {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "payloads are little-endian");

// Returns the number that is stored at `from`.
template <typename T>
T LoadAs(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <typename T>
void StoreAs(T value, uint8_t* to) {
  std::memcpy(to, &value, sizeof(T));
}

// Returns up to eight bytes at `from` as a word; bytes from `end` on are zeros.
inline uint64_t LoadUpTo8(const uint8_t* from, const uint8_t* end) {
  if (end - from >= 8) return LoadAs<uint64_t>(from);
  uint64_t word = 0;
  if (from < end) std::memcpy(&word, from, static_cast<size_t>(end - from));
  return word;
}

}  // namespace thinwire
