#include "monitoring/metrics_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "base/host_port.h"
#include "base/loopback_testing.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Returns the whole answer, headers first, of the server at `host`.
std::string Get(const MetricsServer& server, const std::string& path,
                const std::string& host = "127.0.0.1") {
  const OwnedDescriptor fd = ConnectedTo(host, ParseHostPort(server.address())->port);
  const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
  EXPECT_EQ(write(fd.get(), request.data(), request.size()), static_cast<ssize_t>(request.size()));
  std::string answer;
  char buffer[4096];
  for (ssize_t n; (n = read(fd.get(), buffer, sizeof(buffer))) > 0;) {
    answer.append(buffer, static_cast<size_t>(n));
  }
  return answer;
}

std::string Refusal(const std::string& address) {
  return std::string(MetricsServer::Start(address, {}).status().message());
}

TEST(MetricsServerTest, TellsThePortThatItTook) {
  const auto server = MetricsServer::Start("127.0.0.1:0", {});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT((*server)->address(), StartsWith("127.0.0.1:"));
  EXPECT_NE((*server)->address(), "127.0.0.1:0");
}

TEST(MetricsServerTest, ServesAtAddressesOfIpv6) {
  if (!HasLoopback6()) GTEST_SKIP() << "this machine has no ::1";
  const auto server = MetricsServer::Start("[::1]:0", {});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT((*server)->address(), StartsWith("[::1]:"));
  EXPECT_THAT(Get(**server, "/healthz", "::1"), StartsWith("HTTP/1.1 200 "));
}

TEST(MetricsServerTest, ServesAtAllAddressesOfBothKinds) {
  for (const char* every : {"0.0.0.0:0", "[::]:0", "*:0"}) {
    const auto server = MetricsServer::Start(every, {});
    ASSERT_TRUE(server.ok()) << server.status();
    EXPECT_THAT(Get(**server, "/healthz"), StartsWith("HTTP/1.1 200 ")) << every;
    if (!HasLoopback6()) continue;
    EXPECT_THAT(Get(**server, "/healthz", "::1"), StartsWith("HTTP/1.1 200 ")) << every;
  }
}

TEST(MetricsServerTest, ServesAtAName) {
  const auto server = MetricsServer::Start("localhost:0", {});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT(Get(**server, "/healthz", "localhost"), StartsWith("HTTP/1.1 200 "));
}

TEST(MetricsServerTest, AnAddressThatIsTakenAndOneThatIsNoneAreToldApart) {
  const auto first = MetricsServer::Start("127.0.0.1:0", {});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(Refusal((*first)->address()),
              HasSubstr("at " + (*first)->address() + ": Address already in use"));
  EXPECT_THAT(Refusal("::1:0"), HasSubstr("\"::1:0\", want host:port"));
  EXPECT_THAT(Refusal("nowhere.invalid:0"), HasSubstr("nowhere.invalid:0: "));
}

TEST(MetricsServerTest, ServesItsSourcesAndTheProcessAndNothingOfTheLibrary) {
  const auto registry = std::make_shared<prometheus::Registry>();
  prometheus::BuildGauge().Name("answer").Register(*registry).Add({}).Set(42);
  const auto server = MetricsServer::Start("127.0.0.1:0", {{registry}});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT(Get(**server, "/metrics"),
              AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("\nanswer 42\n"),
                    HasSubstr("\nprocess_resident_memory_bytes "), Not(HasSubstr("exposer_"))));
  EXPECT_THAT(Get(**server, "/other"), StartsWith("HTTP/1.1 404 "));
}

TEST(MetricsServerTest, HealthIsThatOfTheServer) {
  std::atomic<bool> healthy{true};
  MetricsSources sources;
  sources.is_healthy = [&] { return healthy.load(); };
  const auto server = MetricsServer::Start("127.0.0.1:0", sources);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT(Get(**server, "/healthz"), AllOf(StartsWith("HTTP/1.1 200 "), EndsWith("\nok\n")));
  healthy = false;
  EXPECT_THAT(Get(**server, "/healthz"), StartsWith("HTTP/1.1 503 "));
}

}  // namespace
}  // namespace thinwire
