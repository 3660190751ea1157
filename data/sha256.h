// SHA-256 (FIPS 180-4): which bytes these are.
#pragma once

#include <string>
#include <string_view>

namespace thinwire {

// 64 hexadecimal digits, lower case.
std::string Sha256(std::string_view bytes);

}  // namespace thinwire
