// Network addresses as users write them.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace thinwire {

// A host and a port.
struct HostPort {
  // A name, an IPv4 address, an IPv6 address without its brackets, or "*".
  std::string host;
  int port = 0;  // 0 to 65535

  // Returns "host:port", with an IPv6 address in brackets.
  std::string Text() const;
};

// Parses "host:port", with an IPv6 address in brackets. InvalidArgument quotes the text and says
// what is wanted.
absl::StatusOr<HostPort> ParseHostPort(const std::string& text);

// Returns whether listening at `host` means all addresses of the machine: "0.0.0.0", "::", "*".
bool IsEveryAddress(const std::string& host);

// Returns whether only this machine can reach `host`: "localhost", 127.0.0.0/8, ::1.
bool IsOwnMachine(const std::string& host);

}  // namespace thinwire
