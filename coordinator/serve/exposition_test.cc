#include "coordinator/serve/exposition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "monitoring/metrics_server.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

TEST(ExpositionTest, EachFamilyStandsOnceWithTheSamplesOfAll) {
  const std::string a =
      "# HELP process_open_fds Open\n# TYPE process_open_fds gauge\nprocess_open_fds 7\n"
      "# HELP thinwire_step Last step\n# TYPE thinwire_step gauge\nthinwire_step{run=\"a\"} 3\n"
      "# HELP thinwire_s Wall\n# TYPE thinwire_s histogram\n"
      "thinwire_s_count{run=\"a\"} 1\nthinwire_s_sum{run=\"a\"} 2\n";
  const std::string b =
      "# HELP thinwire_step Last step\n# TYPE thinwire_step gauge\nthinwire_step{run=\"b\"} 4\n";
  EXPECT_EQ(MergeExpositions({a, b}),
            "# HELP thinwire_s Wall\n# TYPE thinwire_s histogram\n"
            "thinwire_s_count{run=\"a\"} 1\nthinwire_s_sum{run=\"a\"} 2\n"
            "# HELP thinwire_step Last step\n# TYPE thinwire_step gauge\n"
            "thinwire_step{run=\"a\"} 3\nthinwire_step{run=\"b\"} 4\n");
  EXPECT_EQ(MergeExpositions({}), "");
}

TEST(ExpositionTest, WhatAServerShowsIsScraped) {
  auto registry = std::make_shared<prometheus::Registry>();
  prometheus::BuildGauge()
      .Name("thinwire_step")
      .Help("Last step")
      .Register(*registry)
      .Add({})
      .Set(5);
  const auto server = MetricsServer::Start("127.0.0.1:0", {{registry}});
  ASSERT_TRUE(server.ok()) << server.status();
  const auto text = Scrape((*server)->address(), absl::Seconds(10));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(MergeExpositions({*text}),
              "# HELP thinwire_step Last step\n# TYPE thinwire_step gauge\nthinwire_step 5\n");
}

// A server that takes connections and says nothing, as a stopped process does.
TEST(ExpositionTest, ASilentServerHoldsNobodyUp) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  const std::string name = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  EXPECT_THAT(std::string(Scrape(name, absl::Milliseconds(50)).status().message()),
              HasSubstr(name + ": no answer in time"));
  close(fd);
  EXPECT_FALSE(Scrape(name, absl::Seconds(10)).ok());
}

}  // namespace
}  // namespace thinwire
