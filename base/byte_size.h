// Numbers of bytes as people write them.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace thinwire {

// Returns the bytes of a number with a unit: "12GiB", "1.5 GB", "800B". kB, MB, GB and TB are
// powers of 1000, KiB, MiB, GiB and TiB of 1024; B may be missing. InvalidArgument, with the text
// and the forms wanted, for anything else, and for less than 1 or more than 2^60 bytes.
absl::StatusOr<uint64_t> ParseByteSize(const std::string& text);

// Returns the bytes in the largest unit of 1024 of which there is one: "11.8 GiB"; "800 B".
std::string ByteSizeText(uint64_t bytes);

}  // namespace thinwire
