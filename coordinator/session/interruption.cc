#include "coordinator/session/interruption.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <utility>

#include "coordinator/session/exit_code.h"

namespace thinwire {
namespace {

void MakeReadable(int event_fd) { eventfd_write(event_fd, 1); }

bool IsIgnored(int signal) {
  struct sigaction action;
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

Interruption::Interruption() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  if (!IsIgnored(SIGHUP)) sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal_fd_ = signalfd(-1, &signals, SFD_CLOEXEC);
  seen_fd_ = eventfd(0, EFD_CLOEXEC);
  stop_fd_ = eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this] { Listen(); });
}

Interruption::~Interruption() {
  MakeReadable(stop_fd_);
  thread_.join();
  for (int fd : {signal_fd_, seen_fd_, stop_fd_}) close(fd);
}

bool Interruption::seen() const {
  absl::MutexLock lock(&mutex_);
  return seen_;
}

void Interruption::OnFirst(std::function<void()> callback) {
  absl::MutexLock lock(&mutex_);
  callback_ = std::move(callback);
  if (seen_ && callback_) callback_();
}

void Interruption::Listen() {
  while (true) {
    pollfd entries[] = {{signal_fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
    if (poll(entries, 2, /*timeout=*/-1) < 0) continue;  // EINTR
    if (entries[1].revents != 0) return;
    signalfd_siginfo info;
    if (read(signal_fd_, &info, sizeof(info)) != sizeof(info)) continue;
    absl::MutexLock lock(&mutex_);
    if (seen_ && info.ssi_signo == SIGHUP) continue;
    if (seen_) _exit(kExitInterrupted);
    seen_ = true;
    MakeReadable(seen_fd_);
    // Under the lock, so that a replaced callback does not run after OnFirst has returned.
    if (callback_) callback_();
  }
}

}  // namespace thinwire
