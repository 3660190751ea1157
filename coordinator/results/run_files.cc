#include "coordinator/results/run_files.h"

#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "coordinator/files/summary.h"

namespace thinwire {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownBytes = 80;  // bytes of a refused line that the error shows

absl::Status Refused(const std::string& place, const std::string& line, const char* want) {
  return absl::InvalidArgumentError(
      absl::StrCat(place, ": ", PrintableLine(line.substr(0, kShownBytes)), ", want ", want));
}

bool HasNumber(const Json& line, const char* name) {
  const auto number = line.find(name);
  return number != line.end() && number->is_number_unsigned();
}

bool HasText(const Json& line, const char* name) {
  const auto text = line.find(name);
  return text != line.end() && text->is_string();
}

absl::Status AddMetrics(const std::string& text, const std::string& place, MetricsFile* metrics) {
  constexpr char kWant[] = "an object of type step, evaluation or epoch with its numbers";
  Json line = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object() || !HasNumber(line, "epoch")) return Refused(place, text, kWant);
  const auto type = line.find("type");
  if (type == line.end()) return Refused(place, text, kWant);
  if (*type == "epoch") return FromJson(text, place, &metrics->epochs.emplace_back());
  if (!HasNumber(line, "step")) return Refused(place, text, kWant);
  if (*type == "evaluation") return FromJson(text, place, &metrics->evaluations.emplace_back());
  if (*type != "step") return Refused(place, text, kWant);
  metrics->steps.push_back(std::move(line));
  return absl::OkStatus();
}

absl::Status AddTraffic(const std::string& text, const std::string& place,
                        std::vector<Json>* traffic) {
  Json line = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object() || !HasNumber(line, "step") || !HasText(line, "boundary") ||
      !HasText(line, "direction")) {
    return Refused(place, text, "an object with step, boundary and direction");
  }
  traffic->push_back(std::move(line));
  return absl::OkStatus();
}

// Calls `add` with each whole line of a file and its place. NotFound without the file.
template <typename Add>
absl::Status ForEachLine(const std::string& path, const Add& add) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  size_t begin = 0, number = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    RETURN_IF_ERROR(add(text.substr(begin, end - begin), absl::StrCat(path, ":", ++number)));
    begin = end + 1;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MetricsFile> ReadMetricsFile(const std::string& dir) {
  MetricsFile metrics;
  RETURN_IF_ERROR(ForEachLine(dir + "/metrics.jsonl", [&](const auto& line, const auto& place) {
    return AddMetrics(line, place, &metrics);
  }));
  return metrics;
}

absl::StatusOr<RunFiles> ReadRunFiles(const std::string& dir) {
  RunFiles files;
  ASSIGN_OR_RETURN(files.summary, ReadSummary(dir));
  if (files.summary.status().empty()) {
    return absl::InvalidArgumentError(dir + "/summary.json: is no Summary: it has no status");
  }
  ASSIGN_OR_RETURN(files.experiment, ReadFile(dir + "/experiment.yaml"));
  ASSIGN_OR_RETURN(files.metrics, ReadMetricsFile(dir));
  const absl::Status traffic = ForEachLine(
      dir + "/traffic.jsonl",
      [&](const auto& line, const auto& place) { return AddTraffic(line, place, &files.traffic); });
  if (!absl::IsNotFound(traffic)) RETURN_IF_ERROR(traffic);
  return files;
}

std::string WithoutSeed(const std::string& name) {
  const size_t at = name.rfind("-seed");
  uint64_t seed = 0;
  return at != std::string::npos && at > 0 && absl::SimpleAtoi(name.substr(at + 5), &seed)
             ? name.substr(0, at)
             : name;
}

}  // namespace thinwire
