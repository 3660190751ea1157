#include "coordinator/run/metrics_server.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

TEST(MetricsServerTest, TellsThePortThatItTook) {
  const auto server = MetricsServer::Start("127.0.0.1:0", std::make_shared<prometheus::Registry>());
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT((*server)->address(), ::testing::StartsWith("127.0.0.1:"));
  EXPECT_NE((*server)->address(), "127.0.0.1:0");
}

TEST(MetricsServerTest, ATakenPortIsAnErrorThatNamesIt) {
  const auto registry = std::make_shared<prometheus::Registry>();
  const auto first = MetricsServer::Start("127.0.0.1:0", registry);
  const auto second = MetricsServer::Start((*first)->address(), registry);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr((*first)->address()));
}

}  // namespace
}  // namespace thinwire
