#include "monitoring/process_metrics.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <ctime>
#include <map>
#include <string>

#include "prometheus/metric_family.h"

namespace thinwire {
namespace {

std::map<std::string, double> Values() {
  std::map<std::string, double> values;
  for (const auto& family : ProcessMetrics().Collect()) {
    const auto& metric = family.metric.at(0);
    values[family.name] =
        family.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value;
  }
  return values;
}

TEST(ProcessStatTest, FieldsAreCountedBehindANameThatMayHoldAnything) {
  const auto stat = ParseProcessStat(
      "42 (a) b (c) S 1 42 42 0 -1 4194560 9 0 0 0 150 50 0 0 20 0 7 0 12345 1048576 256 1 2 3");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->cpu_ticks, 200);
  EXPECT_EQ(stat->start_ticks, 12345);
  EXPECT_EQ(stat->virtual_bytes, 1048576);
  EXPECT_EQ(stat->resident_pages, 256);
}

TEST(ProcessStatTest, AnotherTextIsNone) {
  EXPECT_FALSE(ParseProcessStat(""));
  EXPECT_FALSE(ParseProcessStat("42 (a) S 1 2 3"));
  EXPECT_FALSE(ParseProcessStat("42 (a) S 1 42 x"));
}

TEST(ProcessMetricsTest, AreThoseOfThisProcess) {
  const auto values = Values();
  EXPECT_EQ(values.size(), 6u);
  EXPECT_GT(values.at("process_resident_memory_bytes"), 1e6);
  EXPECT_GT(values.at("process_virtual_memory_bytes"), values.at("process_resident_memory_bytes"));
  EXPECT_GE(values.at("process_cpu_seconds_total"), 0);
  EXPECT_NEAR(values.at("process_start_time_seconds"), static_cast<double>(time(nullptr)), 600);
  EXPECT_GT(values.at("process_max_fds"), values.at("process_open_fds"));
}

TEST(ProcessMetricsTest, ADescriptorMoreIsOneMore) {
  const double before = Values().at("process_open_fds");
  const int fd = open("/dev/null", O_RDONLY);
  EXPECT_EQ(Values().at("process_open_fds"), before + 1);
  close(fd);
}

}  // namespace
}  // namespace thinwire
