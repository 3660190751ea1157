#include "base/host_port.h"

#include <arpa/inet.h>

#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

constexpr int kLargestPort = 65535;
constexpr int kLoopbackNetwork = 127;  // first byte of these IPv4 addresses

// Returns whether the text is an IPv6 address, possibly with an interface: "fe80::1%eth0".
bool IsIpv6(const std::string& text) {
  in6_addr address;
  const size_t percent = text.find('%');
  return (percent == text.npos || percent + 1 < text.size()) &&
         inet_pton(AF_INET6, text.substr(0, percent).c_str(), &address) == 1;
}

// Returns the host without its brackets; nothing if it is not a host.
std::string HostIn(const std::string& text) {
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') {
    const std::string inside = text.substr(1, text.size() - 2);
    return IsIpv6(inside) ? inside : "";
  }
  return text.find_first_of(":[]/, \t") == text.npos ? text : "";
}

bool IsLoopback(const in_addr& address) { return ntohl(address.s_addr) >> 24 == kLoopbackNetwork; }

}  // namespace

std::string HostPort::Text() const {
  const bool is_ipv6 = host.find(':') != host.npos;
  return is_ipv6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

absl::StatusOr<HostPort> ParseHostPort(const std::string& text) {
  const size_t colon = text.rfind(':');
  HostPort parsed;
  if (colon != text.npos) {
    parsed.host = HostIn(text.substr(0, colon));
    const std::string port = text.substr(colon + 1);
    const bool is_number = port.find_first_not_of("0123456789") == port.npos;
    if (!parsed.host.empty() && is_number && absl::SimpleAtoi(port, &parsed.port) &&
        parsed.port <= kLargestPort) {
      return parsed;
    }
  }
  const bool is_bare_ipv6 = colon != text.npos && IsIpv6(text.substr(0, colon));
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\", want host:port with a port of at most ", kLargestPort,
                   is_bare_ipv6 ? ", and an IPv6 address in brackets, [::1]:4700" : ""));
}

bool IsEveryAddress(const std::string& host) {
  in6_addr six;
  if (inet_pton(AF_INET6, host.c_str(), &six) == 1) return IN6_IS_ADDR_UNSPECIFIED(&six);
  return host == "0.0.0.0" || host == "*";
}

bool IsOwnMachine(const std::string& host) {
  in_addr four;
  if (inet_pton(AF_INET, host.c_str(), &four) == 1) return IsLoopback(four);
  in6_addr six;
  if (inet_pton(AF_INET6, host.c_str(), &six) == 1) return IN6_IS_ADDR_LOOPBACK(&six);
  return host == "localhost";
}

}  // namespace thinwire
