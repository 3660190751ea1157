#include "coordinator/session/run_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

namespace thinwire {
namespace {

using ::testing::ElementsAre;

constexpr int kExitedWithOne = 1 << 8;  // wait status as waitpid returns it

TEST(RunProcessTest, ARunThatStartsItsStagesIsNotToldOfCertificates) {
  SessionOptions session;
  session.stage_server = "/bin/stages";
  session.security.token_file = "token";
  EXPECT_THAT(RunArguments("e.yaml", "runs/e", "", session),
              ElementsAre("/proc/self/exe", "run", "e.yaml", "--resume", "runs/e", "--stage_server",
                          "/bin/stages"));
}

TEST(RunProcessTest, StagesComeWithWhatOpensThem) {
  SessionOptions session;
  session.allow_other_build = true;
  session.wait_seconds = 5;
  session.security = {"c.pem", "c.key", "ca.pem", "token"};
  EXPECT_THAT(
      RunArguments("e.yaml", "runs/e", "a:1,b:1", session),
      ElementsAre("/proc/self/exe", "run", "e.yaml", "--resume", "runs/e", "--allow_other_build",
                  "--stages", "a:1,b:1", "--stages_wait", "5", "--tls_cert", "c.pem", "--tls_key",
                  "c.key", "--tls_ca", "ca.pem", "--token_file", "token"));
}

TEST(RunProcessTest, TheLastComplaintSaysWhy) {
  const std::string log = ::testing::TempDir() + "/why";
  std::ofstream(log) << "thinwire: an earlier one\nepoch 1/2\nthinwire: stage 1: no memory\nmore\n";
  EXPECT_EQ(WhyRunFailed(kExitedWithOne, log), "stage 1: no memory");
  EXPECT_EQ(WhyRunFailed(SIGKILL, log), "was killed by signal 9 (Killed)");
  EXPECT_EQ(WhyRunFailed(kExitedWithOne, "/none"), "exited with code 1");
}

}  // namespace
}  // namespace thinwire
