// Network addresses as users write them.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace thinwire {

struct HostPort {
  std::string host;  // a name, an IPv4 address, or an IPv6 address in brackets
  int port = 0;      // 0 to 65535
};

// "host:port". InvalidArgument quotes the text and says what is wanted.
absl::StatusOr<HostPort> ParseHostPort(const std::string& text);

}  // namespace thinwire
