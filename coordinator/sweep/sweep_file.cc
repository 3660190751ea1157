#include "coordinator/sweep/sweep_file.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/text.h"
#include "config/overrides.h"
#include "config/run_name.h"
#include "config/yaml_tree.h"
#include "proto/experiment.pb.h"

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

}  // namespace thinwire
