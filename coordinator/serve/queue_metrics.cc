#include "coordinator/serve/queue_metrics.h"

#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/file.h"
#include "coordinator/serve/exposition.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

// Runs are asked one after the other, and a scraper may wait only a second for all of them.
constexpr absl::Duration kPatience = absl::Milliseconds(300);

// Returns where the coordinator of the run in `folder` serves its metrics; empty before it does.
std::string AddressIn(const std::string& folder) {
  const absl::StatusOr<std::string> text = ReadFile(folder + "/targets.json");
  if (!text.ok()) return "";
  const auto targets = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const nlohmann::json::json_pointer first("/0/targets/0");
  if (!targets.is_array() || !targets.contains(first)) return "";
  return targets.at(first).is_string() ? targets.at(first).get<std::string>() : "";
}

}  // namespace

QueueMetrics::QueueMetrics()
    : runs_(prometheus::BuildGauge()
                .Name("thinwire_queue_runs")
                .Help("Runs that the queue knows of")
                .Register(*registry_)) {}

MetricsSources QueueMetrics::sources() {
  MetricsSources sources;
  sources.collectables = {registry_};
  sources.text = [this] { return Text(); };
  return sources;
}

void QueueMetrics::Begun(const std::string& run, const std::string& folder) {
  absl::MutexLock lock(&mutex_);
  folders_[run] = folder;
}

void QueueMetrics::Ended(const std::string& run) {
  absl::MutexLock lock(&mutex_);
  folders_.erase(run);
}

void QueueMetrics::Show(const std::map<std::string, size_t>& counts) {
  for (const auto& [state, count] : counts) {
    runs_.Add({{"state", state}}).Set(static_cast<double>(count));
  }
}

std::string QueueMetrics::Text() {
  std::map<std::string, std::string> folders;
  {
    absl::MutexLock lock(&mutex_);
    folders = folders_;
  }
  std::vector<std::string> texts;
  for (const auto& [run, folder] : folders) {
    const std::string address = AddressIn(folder);
    if (address.empty()) continue;
    auto text = Scrape(address, kPatience);
    if (text.ok()) texts.push_back(*std::move(text));
  }
  return MergeExpositions(texts);
}

}  // namespace thinwire
