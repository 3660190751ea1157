#include "coordinator/results/run_files.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace thinwire {
namespace {

using Json = nlohmann::ordered_json;

// An object, or a discarded value.
Json ParsedObject(const std::string& text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json : Json(Json::value_t::discarded);
}

absl::Status ReadMetrics(const std::string& path, RunFiles* files) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  size_t begin = 0, number = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    Json line = ParsedObject(text.substr(begin, end - begin));
    begin = end + 1;
    ++number;
    const std::string type = line.is_discarded() ? "" : line.value("type", "");
    if (type != "step" && type != "epoch") {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", number, ": want an object of type step or epoch"));
    }
    (type == "step" ? files->steps : files->epochs).push_back(std::move(line));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Json> ReadRunSummary(const std::string& dir) {
  const std::string path = dir + "/summary.json";
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  Json json = ParsedObject(text);
  const bool is_summary = !json.is_discarded() && json.contains("status") &&
                          json.contains("seed") && json.contains("epochs") &&
                          json["epochs"].is_array() && json.contains("boundaries") &&
                          json["boundaries"].is_array();
  if (is_summary) return json;
  return absl::InvalidArgumentError(path + ": is no run's summary");
}

absl::StatusOr<RunFiles> ReadRunFiles(const std::string& dir) {
  RunFiles files;
  ASSIGN_OR_RETURN(files.summary, ReadRunSummary(dir));
  ASSIGN_OR_RETURN(files.experiment, ReadFile(dir + "/experiment.yaml"));
  RETURN_IF_ERROR(ReadMetrics(dir + "/metrics.jsonl", &files));
  return files;
}

}  // namespace thinwire
