#include "coordinator/plan/selected_stages.h"

#include <numeric>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "config/exact_segments.h"
#include "config/resolve.h"
#include "config/specs.h"
#include "config/yaml_tree.h"
#include "coordinator/plan/table_text.h"

namespace thinwire {

absl::StatusOr<std::optional<SelectedStages>> SelectStages(const Experiment& experiment,
                                                           const PlanAssumptions& assumptions,
                                                           const Speeds& speeds) {
  ASSIGN_OR_RETURN(const ReplicasSpec replicas, ReplicasFrom(experiment));
  const bool is_exact =
      replicas.contributions.codec.is_exact() && replicas.average.codec.is_exact();
  if (replicas.count == 1 || assumptions.carriers == 1 || is_exact) return std::nullopt;
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  const std::vector<std::string> names = SegmentNames(partition.model, partition.cuts);
  PlanAssumptions assumed = assumptions;
  assumed.bits_per_second.resize(1);
  const auto seconds = [&](const std::set<int>& exact) -> absl::StatusOr<double> {
    Experiment with = experiment;
    with.mutable_replicas()->clear_stages();
    SetExact(names, exact, with.mutable_replicas());
    RETURN_IF_ERROR(Resolve(&with));
    ASSIGN_OR_RETURN(const Plan plan, MakePlan(with, assumed, speeds));
    return plan.steps.front().seconds();
  };
  ASSIGN_OR_RETURN(const std::set<int> exact,
                   ExactSegments(static_cast<int>(names.size()), seconds));
  std::vector<int> all(names.size());
  std::iota(all.begin(), all.end(), 0);
  SelectedStages selected;
  for (const int segment : exact) selected.add_exact(names[segment]);
  ASSIGN_OR_RETURN(const double of_selected, seconds(exact));
  ASSIGN_OR_RETURN(const double of_compressed, seconds({}));
  ASSIGN_OR_RETURN(const double of_exact, seconds({all.begin(), all.end()}));
  selected.set_step_seconds(of_selected);
  selected.set_compressed_step_seconds(of_compressed);
  selected.set_exact_step_seconds(of_exact);
  return std::make_optional(std::move(selected));
}

std::string FormatSelected(const SelectedStages& selected, bool gathers) {
  const std::string steps = absl::StrFormat(
      "A step takes %.2f ms with all segments compressed, and %.2f ms with all exact",
      1e3 * selected.compressed_step_seconds(), 1e3 * selected.exact_step_seconds());
  if (selected.exact().empty()) {
    return absl::StrCat(
        "\n", Wrapped("", absl::StrFormat("Replicas: %s. The exchange of each segment, if it were "
                                          "exact, would lengthen steps by more than %g %%.",
                                          steps, 100 * kMostLonger)));
  }
  const std::string entry = gathers ? "{contributions: {codec: none}}"
                                    : "{contributions: {codec: none}, average: {codec: none}}";
  std::string text = absl::StrCat(
      "\n", Wrapped("", absl::StrFormat("Replicas: %s. It takes %.2f ms where these segments are "
                                        "exact and the others compressed:",
                                        steps, 1e3 * selected.step_seconds())));
  absl::StrAppend(&text, "replicas:\n  stages:\n");
  for (const std::string& name : selected.exact()) {
    absl::StrAppend(&text, "    ", YamlQuoted(name), ": ", entry, "\n");
  }
  return text;
}

}  // namespace thinwire
