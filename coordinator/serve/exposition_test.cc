#include "coordinator/serve/exposition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/listening_sockets.h"
#include "base/loopback_testing.h"
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
  std::vector<std::string> addresses = {"127.0.0.1:0", "localhost:0"};
  if (HasLoopback6()) addresses.push_back("[::1]:0");
  for (const std::string& address : addresses) {
    const auto server = MetricsServer::Start(address, {{registry}});
    ASSERT_TRUE(server.ok()) << server.status();
    const auto text = Scrape((*server)->address(), absl::Seconds(10));
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_THAT(MergeExpositions({*text}),
                "# HELP thinwire_step Last step\n# TYPE thinwire_step gauge\nthinwire_step 5\n");
  }
}

// The server accepts connections and stays silent, like a stopped process.
TEST(ExpositionTest, ASilentServerHoldsNobodyUp) {
  std::string name;
  {
    const auto silent = ListenAt({"127.0.0.1", 0});
    ASSERT_TRUE(silent.ok()) << silent.status();
    name = absl::StrCat("127.0.0.1:", silent->port);
    EXPECT_THAT(std::string(Scrape(name, absl::Milliseconds(50)).status().message()),
                HasSubstr(name + ": no answer in time"));
  }
  EXPECT_THAT(std::string(Scrape(name, absl::Seconds(10)).status().message()),
              HasSubstr("Connection refused"));
}

}  // namespace
}  // namespace thinwire
