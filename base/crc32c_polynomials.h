// Arithmetic of CRC-32C, for code that computes the CRC of pieces of the bytes separately.
//
// Bytes are a polynomial over GF(2), and their CRC is its remainder modulo x^32 + x^28 + ... + 1. A
// word of 32 bits holds a remainder with its bits reversed: bit 31 is the coefficient of x^0. Four
// little-endian bytes are such a word, too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/host_device.h"

namespace thinwire {
namespace crc32c {

constexpr uint32_t kPolynomial = 0x82F63B78;
constexpr uint32_t kOne = 0x80000000;

// Multiplies by x: a shift to the right, towards higher powers. An x^32 that falls out is replaced
// by kPolynomial.
HOST_DEVICE constexpr uint32_t TimesX(uint32_t a) { return (a >> 1) ^ ((a & 1) ? kPolynomial : 0); }

// Returns the product modulo the polynomial.
HOST_DEVICE constexpr uint32_t Multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (; a != 0; a <<= 1, b = TimesX(b)) {
    if (a & kOne) product ^= b;
  }
  return product;
}

// Returns x^(8 bytes) by repeated squaring: `square` is x^8, x^16, x^32, ...
constexpr uint32_t PowerOfX(size_t bytes) {
  uint32_t power = kOne;
  uint32_t square = kOne >> 8;
  for (; bytes != 0; bytes >>= 1, square = Multiply(square, square)) {
    if (bytes & 1) power = Multiply(power, square);
  }
  return power;
}

// Returns the CRC of bytes with CRC `crc` (0 for none) followed by other bytes. `remainder` is that
// of the other bytes' polynomial times x^32; `power` is PowerOfX of their number.
constexpr uint32_t Append(uint32_t crc, uint32_t remainder, uint32_t power) {
  return ~(Multiply(~crc, power) ^ remainder);
}

}  // namespace crc32c
}  // namespace thinwire
