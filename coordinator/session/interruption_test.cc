#include "coordinator/session/interruption.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "coordinator/session/exit_code.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

void AwaitFirst(const Interruption& interruption) {
  pollfd entry = {interruption.fd(), POLLIN, 0};
  while (poll(&entry, 1, /*timeout=*/-1) != 1) continue;
}

class InterruptionTest : public ::testing::Test {
 protected:
  InterruptionTest() { signal(SIGHUP, SIG_DFL); }  // whatever the tests' parent process set
};

// Waits until the thread of Interruption has received the signal.
void AwaitTaken(int signal) {
  sigset_t pending;
  do {
    std::this_thread::yield();
    sigpending(&pending);
  } while (sigismember(&pending, signal) != 0);
}

TEST_F(InterruptionTest, EachOfItsSignalsIsSeen) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Interruption interruption;
    EXPECT_FALSE(interruption.seen());
    kill(getpid(), signal);
    AwaitFirst(interruption);
    EXPECT_TRUE(interruption.seen());
  }
}

TEST_F(InterruptionTest, ALostTerminalThatIsToldTwiceIsOneSignal) {
  Interruption interruption;
  kill(getpid(), SIGHUP);
  AwaitFirst(interruption);
  kill(getpid(), SIGHUP);
  AwaitTaken(SIGHUP);
  // The destructor waits for the thread, which would end this process if the signal counted twice.
}

TEST_F(InterruptionTest, TheSecondSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        Interruption interruption;
        kill(getpid(), SIGHUP);
        AwaitFirst(interruption);
        kill(getpid(), SIGINT);
        pause();
      },
      ::testing::ExitedWithCode(kExitInterrupted), "");
}

TEST_F(InterruptionTest, HangupsThatAreIgnoredStayIgnored) {
  EXPECT_EXIT(
      {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, nullptr);
        signal(SIGHUP, SIG_IGN);
        Interruption interruption;
        sigset_t blocked;
        pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
        _exit(sigismember(&blocked, SIGHUP) == 0 && sigismember(&blocked, SIGINT) == 1 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace thinwire
