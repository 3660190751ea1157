#include "coordinator/sweep/rows.h"

#include <regex.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/text.h"
#include "config/experiment.h"
#include "config/local_paths.h"

namespace thinwire {
namespace {

std::string LastStep(const std::string& path) { return path.substr(path.rfind('.') + 1); }

// Returns the shortest end of a field's path that no other axis has: "ratio", or "gradients.ratio"
// if there is "activations.ratio" too.
std::string ShortName(const std::string& path, const Sweep& sweep) {
  size_t begin = path.size() - LastStep(path).size();
  const auto is_shared = [&](const std::string& end) {
    return std::count_if(sweep.axes.begin(), sweep.axes.end(), [&](const auto& axis) {
             const std::string& other = axis[0].path;
             return other == end ||
                    (other.size() > end.size() && other.compare(other.size() - end.size() - 1,
                                                                std::string::npos, "." + end) == 0);
           }) > 1;
  };
  while (begin > 0 && is_shared(path.substr(begin))) {
    const size_t dot = begin > 1 ? path.rfind('.', begin - 2) : std::string::npos;
    begin = dot == std::string::npos ? 0 : dot + 1;
  }
  return path.substr(begin);
}

// Returns a value in characters that a folder's name may have: "{codec: topk, ratio: 0.1}" becomes
// "codec-topk-ratio-0.1".
std::string Slug(const std::string& text) {
  std::string slug;
  for (char c : text) {
    const bool stays = std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_';
    if (stays) {
      slug += c;
    } else if (!slug.empty() && slug.back() != '-') {
      slug += '-';
    }
  }
  while (!slug.empty() && slug.back() == '-') slug.pop_back();
  return slug;
}

std::vector<SweepVariant> Variants(const Sweep& sweep) {
  std::vector<SweepVariant> variants = sweep.variants;
  if (variants.empty()) variants.push_back({});
  for (const auto& axis : sweep.axes) {
    std::vector<SweepVariant> product;
    for (const SweepVariant& variant : variants) {
      for (const SweepSetting& setting : axis) {
        SweepVariant with = variant;
        absl::StrAppend(&with.name, with.name.empty() ? "" : "_", ShortName(setting.path, sweep),
                        "-", Slug(setting.value));
        with.settings.push_back(setting);
        if (with.place.empty()) with.place = setting.place;
        product.push_back(std::move(with));
      }
    }
    variants = std::move(product);
  }
  return variants;
}

absl::StatusOr<Experiment> Resolved(const Sweep& sweep, const SweepVariant& variant,
                                    const std::vector<std::string>& overrides,
                                    const std::vector<std::string>& own, uint32_t stages) {
  std::vector<std::string> all;
  for (const SweepSetting& setting : variant.settings) {
    all.push_back(absl::StrCat(setting.path, "=", setting.value));
  }
  all.insert(all.end(), overrides.begin(), overrides.end());
  all.insert(all.end(), own.begin(), own.end());
  auto experiment = ParseExperiment(sweep.text, sweep.source, all, {stages});
  // As the run itself does.
  if (experiment.ok() && stages == 0) MakeStagePathsAbsolute(&*experiment);
  if (experiment.ok() || variant.name.empty()) return experiment;
  return absl::InvalidArgumentError(
      absl::StrCat(variant.place, "row ", variant.name, ": ", experiment.status().message()));
}

}  // namespace

absl::StatusOr<std::vector<SweepRun>> ExpandRuns(const Sweep& sweep,
                                                 const std::vector<std::string>& overrides,
                                                 uint32_t stages) {
  std::vector<SweepRun> runs;
  std::vector<uint64_t> seeds = sweep.seeds;
  std::vector<SweepVariant> variants = Variants(sweep);
  for (SweepVariant& variant : variants) {
    std::vector<std::string> own;
    if (!variant.name.empty()) own.push_back(absl::StrCat("name=\"", variant.name, "\""));
    ASSIGN_OR_RETURN(const Experiment base, Resolved(sweep, variant, overrides, own, stages));
    if (variant.name.empty()) variant.name = base.name();
    if (!seeds.empty()) continue;
    if (base.seed() > INT64_MAX) {  // larger numbers do not fit into results.sqlite
      return absl::InvalidArgumentError(
          absl::StrCat("seed: ", base.seed(), ", want at most ", INT64_MAX, " in a sweep"));
    }
    seeds.push_back(base.seed());
  }
  std::map<std::string, std::string> places;
  for (const SweepVariant& variant : variants) {
    const auto [first, is_new] = places.emplace(variant.name, variant.place);
    if (!is_new) {
      return absl::InvalidArgumentError(
          absl::StrCat(variant.place, "two rows would be called ", variant.name,
                       ": want rows that say what differs by names of their own"));
    }
  }
  for (const uint64_t seed : seeds) {
    for (const SweepVariant& variant : variants) {
      SweepRun run = {absl::StrCat(variant.name, "-seed", seed), variant.name, seed, {}};
      ASSIGN_OR_RETURN(run.experiment, Resolved(sweep, variant, overrides,
                                                {absl::StrCat("name=\"", variant.name, "\""),
                                                 absl::StrCat("seed=", seed)},
                                                stages));
      runs.push_back(std::move(run));
    }
  }
  const std::vector<std::string> rows = RowsOf(runs);
  if (!sweep.baseline.empty() &&
      std::find(rows.begin(), rows.end(), sweep.baseline) == rows.end()) {
    return absl::InvalidArgumentError(absl::StrCat("baseline: no row is called ", sweep.baseline,
                                                   "; did you mean ",
                                                   NearestName(sweep.baseline, rows), "?"));
  }
  return runs;
}

absl::Status KeepOnly(const std::string& pattern, std::vector<SweepRun>* runs) {
  regex_t whole;
  const std::string anchored = absl::StrCat("^(", pattern, ")$");
  if (const int wrong = regcomp(&whole, anchored.c_str(), REG_EXTENDED | REG_NOSUB); wrong != 0) {
    char why[128];
    regerror(wrong, &whole, why, sizeof(why));
    return absl::InvalidArgumentError(absl::StrCat("--only: ", pattern, ": ", why));
  }
  const std::vector<std::string> rows = RowsOf(*runs);
  const auto is_other = [&](const SweepRun& run) {
    return regexec(&whole, run.row.c_str(), 0, nullptr, 0) != 0;
  };
  runs->erase(std::remove_if(runs->begin(), runs->end(), is_other), runs->end());
  regfree(&whole);
  if (!runs->empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--only: ", pattern, " is no row; there are ", absl::StrJoin(rows, ", ")));
}

std::vector<std::string> RowsOf(const std::vector<SweepRun>& runs) {
  std::vector<std::string> rows;
  for (const SweepRun& run : runs) {
    if (std::find(rows.begin(), rows.end(), run.row) == rows.end()) rows.push_back(run.row);
  }
  return rows;
}

}  // namespace thinwire
