#include "monitoring/metrics_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "prometheus/gauge.h"
#include "prometheus/registry.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The whole answer, headers first.
std::string Get(const MetricsServer& server, const std::string& path) {
  const std::string& address = server.address();
  sockaddr_in peer = {};
  peer.sin_family = AF_INET;
  peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  peer.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&peer), sizeof(peer)), 0);
  const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
  EXPECT_EQ(write(fd, request.data(), request.size()), static_cast<ssize_t>(request.size()));
  std::string answer;
  char buffer[4096];
  for (ssize_t n; (n = read(fd, buffer, sizeof(buffer))) > 0;) {
    answer.append(buffer, static_cast<size_t>(n));
  }
  close(fd);
  return answer;
}

TEST(MetricsServerTest, TellsThePortThatItTook) {
  const auto server = MetricsServer::Start("127.0.0.1:0", {});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT((*server)->address(), StartsWith("127.0.0.1:"));
  EXPECT_NE((*server)->address(), "127.0.0.1:0");
}

TEST(MetricsServerTest, ATakenPortIsAnErrorThatNamesIt) {
  const auto first = MetricsServer::Start("127.0.0.1:0", {});
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = MetricsServer::Start((*first)->address(), {});
  EXPECT_THAT(std::string(second.status().message()), HasSubstr((*first)->address()));
}

TEST(MetricsServerTest, ServesItsSourcesAndTheProcessAndNothingOfTheLibrary) {
  const auto registry = std::make_shared<prometheus::Registry>();
  prometheus::BuildGauge().Name("answer").Register(*registry).Add({}).Set(42);
  const auto server = MetricsServer::Start("127.0.0.1:0", {{registry}});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT(Get(**server, "/metrics"),
              AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("\nanswer 42\n"),
                    HasSubstr("\nprocess_resident_memory_bytes "), Not(HasSubstr("exposer_"))));
  EXPECT_THAT(Get(**server, "/other"), HasSubstr(" 404 "));
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
