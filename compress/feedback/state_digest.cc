#include "compress/feedback/state_digest.h"

namespace thinwire {
namespace {

constexpr uint64_t kPrime = 4294967291u;

uint64_t Minus(uint64_t a, uint64_t b) { return (a % kPrime + kPrime - b % kPrime) % kPrime; }

// Returns 1 / x = x^(p - 2) modulo the prime p (Fermat), by repeated squaring.
uint64_t Inverse(uint64_t x) {
  uint64_t inverse = 1;
  for (uint64_t power = kPrime - 2; power > 0; power >>= 1) {
    if (power & 1) inverse = inverse * x % kPrime;
    x = x * x % kPrime;
  }
  return inverse;
}

}  // namespace

void StateDigest::Add(uint64_t row_digest) {
  const uint64_t h = row_digest % kPrime;
  ++rows_;
  sum_ = (sum_ + h) % kPrime;
  weighted_ = (weighted_ + rows_ % kPrime * h) % kPrime;
}

std::optional<size_t> DifferingRow(uint64_t a, uint64_t b, size_t num_rows) {
  const uint64_t difference = Minus(a >> 32, b >> 32);
  if (difference == 0) return std::nullopt;
  // If row j alone differs by d, the sums differ by d and j d: their quotient is j.
  const uint64_t weighted = Minus(a & 0xFFFFFFFFu, b & 0xFFFFFFFFu);
  const uint64_t row = weighted * Inverse(difference) % kPrime;
  if (row < 1 || row > num_rows) return std::nullopt;
  return row - 1;
}

}  // namespace thinwire
