#include "coordinator/serve/queue_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "coordinator/serve/exposition.h"
#include "prometheus/gauge.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Shown(const MetricsServer& server) {
  const auto text = Scrape(server.address(), absl::Seconds(10));
  EXPECT_TRUE(text.ok()) << text.status();
  return *text;
}

TEST(QueueMetricsTest, ARunsSeriesAreThereWhileItRuns) {
  auto registry = std::make_shared<prometheus::Registry>();
  prometheus::BuildGauge()
      .Name("thinwire_step")
      .Help("Last step")
      .Register(*registry)
      .Add({{"run", "a"}})
      .Set(5);
  auto run = MetricsServer::Start("127.0.0.1:0", {{registry}});
  ASSERT_TRUE(run.ok()) << run.status();
  const std::string folder = ::testing::TempDir() + "/metrics_run";
  std::filesystem::create_directories(folder);
  std::filesystem::remove(folder + "/targets.json");

  QueueMetrics metrics;
  metrics.Show({{"waits", 2}, {"runs", 1}});
  const auto server = MetricsServer::Start("127.0.0.1:0", metrics.sources());
  ASSERT_TRUE(server.ok()) << server.status();
  metrics.Begun("a-1", folder);
  EXPECT_THAT(Shown(**server), HasSubstr("thinwire_queue_runs{state=\"waits\"} 2"));
  EXPECT_THAT(Shown(**server), Not(HasSubstr("thinwire_step"))) << "before it says where";
  std::ofstream(folder + "/targets.json")
      << R"([{"targets": [")" << (*run)->address() << R"("], "labels": {"job": "coordinator"}}])";
  EXPECT_THAT(Shown(**server), HasSubstr("thinwire_step{run=\"a\"} 5"));
  metrics.Ended("a-1");
  EXPECT_THAT(Shown(**server), Not(HasSubstr("thinwire_step")));
  metrics.Begun("a-1", folder);
  run->reset();
  EXPECT_THAT(Shown(**server), Not(HasSubstr("thinwire_step"))) << "its process is gone";
}

}  // namespace
}  // namespace thinwire
