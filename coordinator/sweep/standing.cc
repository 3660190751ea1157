#include "coordinator/sweep/standing.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "config/differences.h"
#include "config/experiment.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

// Returns whether the summary has all epochs; one with fewer is from a run that was meant to be
// shorter.
bool IsComplete(const std::string& summary, uint32_t epochs) {
  const auto json = nlohmann::json::parse(summary, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return false;
  const auto status = json.find("status"), list = json.find("epochs");
  return status != json.end() && *status == "completed" && list != json.end() && list->is_array() &&
         list->size() == epochs;
}

std::string Shown(const std::string& value) { return value.empty() ? "nothing" : value; }

}  // namespace

absl::StatusOr<Standing> StandingOf(const std::string& folder, const Experiment& wanted) {
  const std::string path = folder + "/experiment.yaml";
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) return Standing::kAbsent;
  RETURN_IF_ERROR(text.status());
  ASSIGN_OR_RETURN(const Experiment there, ParseResolved(*text, path));
  const std::vector<FieldDifference> differences = Differences(there, wanted);
  if (!differences.empty()) {
    const FieldDifference& first = differences[0];
    return absl::InvalidArgumentError(absl::StrCat(
        folder, ": a run of another experiment stands here: ", first.path, " is ",
        Shown(first.left), ", want ", Shown(first.right),
        differences.size() == 1 ? ""
                                : absl::StrCat(", and ", differences.size() - 1, " more differ"),
        "; give the row another name, give another --out, or remove this folder"));
  }
  const absl::StatusOr<std::string> summary = ReadFile(folder + "/summary.json");
  if (absl::IsNotFound(summary.status())) return Standing::kUnfinished;
  RETURN_IF_ERROR(summary.status());
  return IsComplete(*summary, wanted.epochs()) ? Standing::kFinished : Standing::kUnfinished;
}

}  // namespace thinwire
