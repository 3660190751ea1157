#include "coordinator/codecs/list.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compress/codec_table.h"
#include "compress/feedback/spec.h"
#include "compress/spec_parameters.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

struct Entry {
  std::string name, what;
  // Pairs of name and default; empty: there is no default.
  std::vector<std::pair<std::string, std::string>> parameters;
};

// The parameters that come with another one's value only stand last.
Entry CodecEntry(const CodecRow& row) {
  Entry entry{row.name, row.description, {}};
  if (row.is_plugin) {
    entry.parameters = {{"plugin", ""}, {"parameters", kNoPluginParameters}};
    return entry;
  }
  const CodecSpec spec = DefaultSpec(row.value);
  for (const bool matters : {true, false}) {
    VisitAllParameters(spec, [&](const char* name, const auto&, const auto& use) {
      if ((use.unmet == nullptr) != matters) return;
      entry.parameters.emplace_back(name, DefaultText(use.fallback, use.presence));
    });
  }
  return entry;
}

// Returns the entry of a feedback preset, without parameters that are off by default, such as the
// folder for the state.
Entry FeedbackEntry(const FeedbackPreset& preset) {
  Entry entry{preset.name, preset.what, {}};
  VisitParameters(preset.spec, [&](const char* name, const auto& value, Presence presence) {
    if (IsFilledIn(presence)) entry.parameters.emplace_back(name, Spelled(value));
  });
  return entry;
}

std::string Table(const char* title, const std::vector<Entry>& entries) {
  std::string text = absl::StrCat("| ", title, " | is | parameters = defaults |\n|---|---|---|\n");
  for (const Entry& entry : entries) {
    const std::string parameters =
        absl::StrJoin(entry.parameters, ", ", [](std::string* out, const auto& parameter) {
          absl::StrAppend(out, parameter.first, parameter.second.empty() ? "" : "=",
                          parameter.second);
        });
    absl::StrAppend(&text, "| ", entry.name, " | ", entry.what, " | ", parameters, " |\n");
  }
  return text;
}

nlohmann::ordered_json Json(const std::vector<Entry>& entries) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Entry& entry : entries) {
    nlohmann::ordered_json parameters = nlohmann::ordered_json::object();
    for (const auto& [name, value] : entry.parameters) parameters[name] = value;
    all.push_back({{"name", entry.name}, {"is", entry.what}, {"parameters", parameters}});
  }
  return all;
}

}  // namespace

std::string CodecList(TextFormat format) {
  std::vector<Entry> codecs, feedback;
  for (const CodecRow& row : CodecRows()) codecs.push_back(CodecEntry(row));
  for (const FeedbackPreset& preset : FeedbackPresets()) feedback.push_back(FeedbackEntry(preset));
  if (format == TextFormat::kJson) {
    return nlohmann::ordered_json{{"codecs", Json(codecs)}, {"feedback", Json(feedback)}}.dump(2) +
           "\n";
  }
  return absl::StrCat(Table("codec", codecs), "\n", Table("feedback", feedback),
                      "\nA parameter without a default is off until it is given.\n");
}

}  // namespace thinwire
