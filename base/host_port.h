// Network addresses as users write them.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace thinwire {

struct HostPort {
  // A name, an IPv4 address, an IPv6 address without its brackets, or "*".
  std::string host;
  int port = 0;  // 0 to 65535

  // "host:port", an IPv6 address in brackets.
  std::string Text() const;
};

// "host:port", an IPv6 address in brackets. InvalidArgument quotes the text and says what is
// wanted.
absl::StatusOr<HostPort> ParseHostPort(const std::string& text);

// Whether who listens at `host` does so at all addresses of its machine: "0.0.0.0", "::", "*".
bool IsEveryAddress(const std::string& host);

// Whether only this machine reaches `host`: "localhost", 127.0.0.0/8, ::1.
bool IsOwnMachine(const std::string& host);

}  // namespace thinwire
