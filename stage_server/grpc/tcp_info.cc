#include "stage_server/grpc/tcp_info.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace thinwire {
namespace {

// "127.0.0.1:4700" or "[::1]:4700"; IPv4 addresses that are mapped into IPv6 are given as IPv4.
std::string ToText(const sockaddr_storage& address) {
  char host[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof(v4));
    inet_ntop(AF_INET, &v4.sin_addr, host, sizeof(host));
    return absl::StrCat(host, ":", ntohs(v4.sin_port));
  }
  if (address.ss_family != AF_INET6) return "";
  sockaddr_in6 v6;
  std::memcpy(&v6, &address, sizeof(v6));
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    inet_ntop(AF_INET, v6.sin6_addr.s6_addr + 12, host, sizeof(host));
    return absl::StrCat(host, ":", ntohs(v6.sin6_port));
  }
  inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof(host));
  return absl::StrCat("[", host, "]:", ntohs(v6.sin6_port));
}

bool IsConnectedTo(int fd, const std::string& peer) {
  sockaddr_storage address;
  socklen_t size = sizeof(address);
  return getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
         ToText(address) == peer;
}

std::vector<int> OpenFiles() {
  std::vector<int> files;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), closedir);
  if (folder == nullptr) return files;
  while (const dirent* entry = readdir(folder.get())) {
    int fd = -1;
    if (absl::SimpleAtoi(entry->d_name, &fd)) files.push_back(fd);
  }
  return files;
}

uint64_t BytesAcked(int fd) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  constexpr size_t kEnd = offsetof(tcp_info, tcpi_bytes_acked) + sizeof(info.tcpi_bytes_acked);
  return size < kEnd ? 0 : info.tcpi_bytes_acked;
}

}  // namespace

uint64_t TcpBytesAcked(const std::string& peer) {
  absl::string_view address = peer;
  if (!absl::ConsumePrefix(&address, "ipv4:") && !absl::ConsumePrefix(&address, "ipv6:")) return 0;
  const std::string wanted = absl::StrReplaceAll(address, {{"%5B", "["}, {"%5D", "]"}});
  uint64_t busiest = 0;
  for (int fd : OpenFiles()) {
    if (IsConnectedTo(fd, wanted)) busiest = std::max(busiest, BytesAcked(fd));
  }
  return busiest;
}

}  // namespace thinwire
