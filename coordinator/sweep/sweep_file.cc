#include "coordinator/sweep/sweep_file.h"

#include <regex.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/text.h"
#include "config/experiment.h"
#include "config/local_paths.h"
#include "config/overrides.h"
#include "config/run_name.h"
#include "config/yaml_tree.h"

namespace thinwire {
namespace {

using Kind = YamlNode::Kind;

const std::vector<std::string>& SweepFields() {
  static const auto* fields =
      new std::vector<std::string>{"name", "experiment", "rows", "axes", "seeds", "baseline"};
  return *fields;
}

absl::Status Error(const std::string& place, const std::string& what) {
  return absl::InvalidArgumentError(place + what);
}

// Checks that the field exists and takes that value. Faults that involve several fields show when
// the row is resolved.
absl::Status CheckSetting(const SweepSetting& setting) {
  Experiment scratch;
  const std::string assignment = absl::StrCat(setting.path, "=", setting.value);
  const absl::Status status = Override(assignment, &scratch);
  if (status.ok()) return status;
  const std::string said(status.message()), before = absl::StrCat("--set ", assignment, ": ");
  return Error(setting.place, said.rfind(before, 0) == 0 ? said.substr(before.size()) : said);
}

absl::Status TakeSettings(const std::string& source, const YamlNode& map, const std::string& of,
                          std::vector<SweepSetting>* settings) {
  if (map.kind != Kind::kMap) {
    return Error(YamlPlace(source, map.line),
                 absl::StrCat(of, ": want a map from fields to values"));
  }
  for (size_t i = 0; i < map.items.size(); ++i) {
    settings->push_back({map.keys[i], YamlText(map.items[i]), YamlPlace(source, map.key_lines[i])});
    RETURN_IF_ERROR(CheckSetting(settings->back()));
  }
  return absl::OkStatus();
}

absl::Status AddAxis(const std::string& path, const YamlNode& values, const std::string& place,
                     Sweep* sweep) {
  if (values.kind != Kind::kList || values.items.empty()) {
    return Error(place, absl::StrCat("axis ", path, ": want a list of at least one value"));
  }
  for (const auto& axis : sweep->axes) {
    if (axis[0].path == path) return Error(place, absl::StrCat("axis ", path, " stands twice"));
  }
  std::vector<SweepSetting> axis;
  for (const YamlNode& value : values.items) {
    axis.push_back({path, YamlText(value), place});
    RETURN_IF_ERROR(CheckSetting(axis.back()));
  }
  sweep->axes.push_back(std::move(axis));
  return absl::OkStatus();
}

absl::Status TakeSeeds(const std::vector<std::string>& texts, const std::string& place,
                       Sweep* sweep) {
  sweep->seeds.clear();
  if (texts.empty()) return Error(place, "want at least one seed");
  for (const std::string& text : texts) {
    int64_t seed = 0;
    const bool is_digits = text.find_first_not_of("0123456789") == std::string::npos;
    if (!is_digits || !absl::SimpleAtoi(text, &seed)) {
      return Error(place, absl::StrCat(text, ", want whole numbers from 0 to ", INT64_MAX));
    }
    const auto number = static_cast<uint64_t>(seed);
    if (std::find(sweep->seeds.begin(), sweep->seeds.end(), number) != sweep->seeds.end()) {
      return Error(place, absl::StrCat(text, " stands twice"));
    }
    sweep->seeds.push_back(number);
  }
  return absl::OkStatus();
}

// Returns `path` relative to the folder of `file`.
std::string Beside(const std::string& file, const std::string& path) {
  return (std::filesystem::path(file).parent_path() / path).lexically_normal().string();
}

class SweepReader {
 public:
  SweepReader(std::string path, Sweep* sweep) : path_(std::move(path)), sweep_(*sweep) {}

  absl::Status Read(const YamlNode& root) {
    for (size_t i = 0; i < root.items.size(); ++i) {
      RETURN_IF_ERROR(Take(root.keys[i], root.key_lines[i], root.items[i]));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Take(const std::string& key, int line, const YamlNode& value) {
    const std::string place = YamlPlace(path_, line);
    if (key == "name") return TakeText(value, place + "name: ", &sweep_.name);
    if (key == "baseline") return TakeText(value, place + "baseline: ", &sweep_.baseline);
    if (key == "experiment") return TakeExperiment(value, place);
    if (key == "rows") return TakeRows(value, place);
    if (key == "axes") return TakeAxes(value, place);
    if (key == "seeds") return TakeSeedList(value, place + "seeds: ");
    return Error(
        place, absl::StrCat(key, ": unknown field; did you mean ", NearestName(key, SweepFields()),
                            "? Fields of a sweep: ", absl::StrJoin(SweepFields(), ", ")));
  }

  static absl::Status TakeText(const YamlNode& value, const std::string& place, std::string* text) {
    if (value.kind != Kind::kScalar) return Error(place, "want a text");
    *text = value.text;
    return absl::OkStatus();
  }

  absl::Status TakeExperiment(const YamlNode& value, const std::string& place) {
    if (value.kind == Kind::kMap) {
      sweep_.text = YamlText(value);
      sweep_.source = absl::StrCat(place, "experiment");
      return absl::OkStatus();
    }
    if (value.kind != Kind::kScalar) {
      return Error(place, "experiment: want the path of an experiment file, or the experiment");
    }
    sweep_.source = Beside(path_, value.text);
    const auto text = ReadYamlFile(sweep_.source);
    if (!text.ok()) return Error(place, absl::StrCat("experiment: ", text.status().message()));
    sweep_.text = *text;
    return absl::OkStatus();
  }

  absl::Status TakeRows(const YamlNode& rows, const std::string& place) {
    if (rows.kind != Kind::kMap || rows.items.empty()) {
      return Error(place, "rows: want a map from names to fields");
    }
    for (size_t i = 0; i < rows.items.size(); ++i) {
      SweepVariant variant = {rows.keys[i], {}, YamlPlace(path_, rows.key_lines[i])};
      RETURN_IF_ERROR(TakeSettings(path_, rows.items[i], absl::StrCat("rows: ", rows.keys[i]),
                                   &variant.settings));
      sweep_.variants.push_back(std::move(variant));
    }
    return absl::OkStatus();
  }

  absl::Status TakeAxes(const YamlNode& axes, const std::string& place) {
    if (axes.kind != Kind::kMap || axes.items.empty()) {
      return Error(place, "axes: want a map from fields to lists of values");
    }
    for (size_t i = 0; i < axes.items.size(); ++i) {
      RETURN_IF_ERROR(
          AddAxis(axes.keys[i], axes.items[i], YamlPlace(path_, axes.key_lines[i]), &sweep_));
    }
    return absl::OkStatus();
  }

  absl::Status TakeSeedList(const YamlNode& list, const std::string& place) {
    if (list.kind != Kind::kList) return Error(place, "want a list of whole numbers");
    std::vector<std::string> texts;
    for (const YamlNode& item : list.items) texts.push_back(YamlText(item));
    return TakeSeeds(texts, place, &sweep_);
  }

  const std::string path_;
  Sweep& sweep_;
};

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

absl::StatusOr<Sweep> ReadSweep(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadYamlFile(path));
  ASSIGN_OR_RETURN(const YamlNode root, ParseYaml(text, path));
  Sweep sweep;
  sweep.name = RunNameOf(path);
  const bool is_sweep =
      std::find(root.keys.begin(), root.keys.end(), "experiment") != root.keys.end();
  if (is_sweep) {
    RETURN_IF_ERROR(SweepReader(path, &sweep).Read(root));
    return sweep;
  }
  for (size_t i = 0; i < root.keys.size(); ++i) {
    if (root.keys[i] != "rows" && root.keys[i] != "axes") continue;
    return Error(YamlPlace(path, root.key_lines[i]),
                 absl::StrCat(root.keys[i],
                              " without experiment: want the path of an experiment "
                              "file, or the experiment"));
  }
  sweep.text = text;
  sweep.source = path;
  return sweep;
}

absl::Status AddGrid(const std::string& grid, Sweep* sweep) {
  const std::string place = absl::StrCat("--grid ", grid, ": ");
  const size_t equals = grid.find('=');
  if (equals == std::string::npos || equals == 0) return Error(place, "want FIELD=VALUE,VALUE");
  ASSIGN_OR_RETURN(const YamlNode values, ParseYaml(absl::StrCat("[", grid.substr(equals + 1), "]"),
                                                    absl::StrCat("--grid ", grid)));
  return AddAxis(grid.substr(0, equals), values, place, sweep);
}

absl::Status SetSeeds(const std::vector<std::string>& seeds, Sweep* sweep) {
  return TakeSeeds(seeds, "--seeds: ", sweep);
}

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
