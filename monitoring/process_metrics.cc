#include "monitoring/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <utility>

#include "prometheus/metric_family.h"

namespace thinwire {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr int kFirstField = 3;  // number of the first field after the name, as in proc(5)

std::string ReadFile(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns when the system started, as Unix time.
std::optional<double> BootSeconds() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("btime ", 0) == 0) return std::stod(line.substr(sizeof("btime")));
  }
  return std::nullopt;
}

std::optional<double> OpenDescriptors() {
  std::error_code error;
  const std::filesystem::directory_iterator all("/proc/self/fd", error);
  // The iteration itself has one open.
  if (error) return std::nullopt;
  return static_cast<double>(std::distance(begin(all), end(all)) - 1);
}

MetricFamily Family(const char* name, const char* help, MetricType type, double value) {
  prometheus::ClientMetric metric;
  (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = type;
  family.metric.push_back(std::move(metric));
  return family;
}

}  // namespace

std::optional<ProcessStat> ParseProcessStat(const std::string& text) {
  const size_t name_end = text.rfind(')');  // the name may hold any characters
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream rest(text.substr(name_end + 1));
  std::string state;
  rest >> state;
  double fields[25] = {};
  for (int i = kFirstField + 1; i < 25; ++i) rest >> fields[i];
  if (!rest) return std::nullopt;
  return ProcessStat{fields[14] + fields[15], fields[22], fields[23], fields[24]};
}

std::vector<MetricFamily> ProcessMetrics::Collect() const {
  std::vector<MetricFamily> families;
  if (const auto stat = ParseProcessStat(ReadFile("/proc/self/stat"))) {
    const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
    families.push_back(Family("process_cpu_seconds_total", "User and system CPU time.",
                              MetricType::Counter, stat->cpu_ticks / ticks));
    families.push_back(Family("process_resident_memory_bytes", "Resident memory.",
                              MetricType::Gauge, stat->resident_pages * page));
    families.push_back(Family("process_virtual_memory_bytes", "Virtual memory.", MetricType::Gauge,
                              stat->virtual_bytes));
    if (const auto boot = BootSeconds()) {
      families.push_back(Family("process_start_time_seconds",
                                "When the process started, Unix time.", MetricType::Gauge,
                                *boot + stat->start_ticks / ticks));
    }
  }
  if (const auto open = OpenDescriptors()) {
    families.push_back(
        Family("process_open_fds", "Open file descriptors.", MetricType::Gauge, *open));
  }
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    families.push_back(Family("process_max_fds", "Most file descriptors that may be open.",
                              MetricType::Gauge, static_cast<double>(limit.rlim_cur)));
  }
  return families;
}

}  // namespace thinwire
