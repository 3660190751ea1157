#include "coordinator/serve/exposition.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/host_port.h"
#include "base/owned_descriptor.h"
#include "base/status.h"
#include "base/steady_time.h"

namespace thinwire {
namespace {

constexpr char kOk[] = "HTTP/1.1 200 ";
constexpr char kEndOfHead[] = "\r\n\r\n";
constexpr size_t kMostBytes = size_t{16} << 20;

absl::Status Unavailable(const std::string& address, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("metrics of ", address, ": ", why));
}

// Returns whether `events` came before the deadline.
bool Await(int fd, short events, SteadyTime deadline) {
  const absl::Duration left = deadline - SteadyTime::Now();
  pollfd entry = {fd, events, 0};
  return left > absl::ZeroDuration() &&
         poll(&entry, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1) > 0;
}

// Connects to one address. *error is 0, or the errno value that says why there is no connection.
OwnedDescriptor Connect(const addrinfo& to, SteadyTime deadline, int* error) {
  OwnedDescriptor fd(socket(to.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  *error = fd.get() < 0 || connect(fd.get(), to.ai_addr, to.ai_addrlen) != 0 ? errno : 0;
  if (*error != EINPROGRESS) return fd;
  *error = ETIMEDOUT;
  socklen_t size = sizeof(*error);
  if (Await(fd.get(), POLLOUT, deadline)) {
    getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, error, &size);
  }
  return fd;
}

// Connects to the first address of the host that accepts.
absl::StatusOr<OwnedDescriptor> Dial(const std::string& address, SteadyTime deadline) {
  ASSIGN_OR_RETURN(const HostPort target, ParseHostPort(address));
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int unknown =
      getaddrinfo(target.host.c_str(), std::to_string(target.port).c_str(), &hints, &found);
  if (unknown != 0) return Unavailable(address, gai_strerror(unknown));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, &freeaddrinfo);
  int error = 0;
  for (const addrinfo* to = found; to != nullptr; to = to->ai_next) {
    OwnedDescriptor fd = Connect(*to, deadline, &error);
    if (error == 0) return fd;
  }
  return Unavailable(address, strerror(error));
}

// Returns "thinwire_epoch" for "# HELP thinwire_epoch Epoch of the last step"; empty for other
// lines.
absl::string_view FamilyOf(absl::string_view line) {
  if (!absl::ConsumePrefix(&line, "# HELP ") && !absl::ConsumePrefix(&line, "# TYPE ")) return "";
  return line.substr(0, line.find(' '));
}

}  // namespace

absl::StatusOr<std::string> Scrape(const std::string& address, absl::Duration patience) {
  const SteadyTime deadline = SteadyTime::Now() + patience;
  ASSIGN_OR_RETURN(const OwnedDescriptor connection, Dial(address, deadline));
  const int fd = connection.get();
  const std::string request =
      absl::StrCat("GET /metrics HTTP/1.1\r\nHost: ", address, "\r\nConnection: close", kEndOfHead);
  if (!Await(fd, POLLOUT, deadline) || send(fd, request.data(), request.size(), MSG_NOSIGNAL) !=
                                           static_cast<ssize_t>(request.size())) {
    return Unavailable(address, "no connection");
  }
  std::string answer;
  while (true) {
    if (!Await(fd, POLLIN, deadline)) return Unavailable(address, "no answer in time");
    char piece[16384];
    const ssize_t bytes = recv(fd, piece, sizeof(piece), 0);
    if (bytes < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (bytes < 0) return Unavailable(address, strerror(errno));
    if (bytes == 0) break;
    answer.append(piece, static_cast<size_t>(bytes));
    if (answer.size() > kMostBytes) return Unavailable(address, "the answer does not end");
  }
  const size_t head = answer.find(kEndOfHead);
  if (!absl::StartsWith(answer, kOk) || head == answer.npos) {
    return Unavailable(address, "no metrics are served there");
  }
  return answer.substr(head + sizeof(kEndOfHead) - 1);
}

std::string MergeExpositions(const std::vector<std::string>& texts) {
  struct Family {
    std::string head, samples;
  };
  std::map<std::string, Family> families;
  for (const std::string& text : texts) {
    Family* family = nullptr;
    bool is_new = false;
    std::string name;
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      const absl::string_view begun = FamilyOf(line);
      if (!begun.empty() && begun != name) {
        name = std::string(begun);
        is_new = families.count(name) == 0;
        family = absl::StartsWith(name, "process_") ? nullptr : &families[name];
      }
      if (family == nullptr || line.empty()) continue;
      if (line[0] != '#') {
        absl::StrAppend(&family->samples, line, "\n");
      } else if (is_new) {
        absl::StrAppend(&family->head, line, "\n");
      }
    }
  }
  std::string merged;
  for (const auto& [name, family] : families) absl::StrAppend(&merged, family.head, family.samples);
  return merged;
}

}  // namespace thinwire
