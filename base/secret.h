// What somebody must know to be let in: drawn from the system, compared without telling how much of
// a wrong one was right.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace thinwire {

// The least that is taken for a secret.
inline constexpr size_t kMinSecretBytes = 16;

// 32 bytes of the system's random source.
std::string NewSecret();

// In a time that depends on the lengths only. False for two that are shorter than kMinSecretBytes:
// what was never set lets nobody in.
bool SameSecret(std::string_view a, std::string_view b);

}  // namespace thinwire
