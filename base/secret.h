// Secrets that admit their holder: drawn from the system, compared in a time that does not show how
// much of a wrong one was right.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace thinwire {

// Least length of a secret.
inline constexpr size_t kMinSecretBytes = 16;

// Returns 32 bytes from the system's random source.
std::string NewSecret();

// Compares in a time that depends only on the lengths. Returns false for two secrets shorter than
// kMinSecretBytes, so that a secret that was never set admits nobody.
bool SameSecret(std::string_view a, std::string_view b);

}  // namespace thinwire
