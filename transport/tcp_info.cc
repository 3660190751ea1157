#include <dirent.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/numbers.h"
#include "transport/sockets.h"

namespace thinwire {
namespace {

bool IsConnectedTo(int fd, const std::string& peer) {
  sockaddr_storage address;
  socklen_t size = sizeof(address);
  return getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
         SocketName(address) == peer;
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

// Returns zeros if an older kernel, or a socket other than TCP, has no answer.
tcp_info InfoOf(int fd) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  return info;
}

}  // namespace

uint64_t TcpBytesReceived(int fd) { return InfoOf(fd).tcpi_bytes_received; }

uint64_t TcpBytesAcked(const std::string& peer) {
  const std::string wanted = SocketNameOfPeer(peer);
  if (wanted.empty()) return 0;
  uint64_t busiest = 0;
  for (int fd : OpenFiles()) {
    if (IsConnectedTo(fd, wanted))
      busiest = std::max<uint64_t>(busiest, InfoOf(fd).tcpi_bytes_acked);
  }
  return busiest;
}

}  // namespace thinwire
