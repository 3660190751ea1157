// Checks that docs/experiment_file.md and docs/compression.md have every parameter, and only
// defaults that the code has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "compress/spec_parameters.h"
#include "config/choices.h"
#include "config/resolve.h"
#include "config/yaml_tree.h"
#include "proto/experiment.pb.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

std::string Page(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> Lines(const std::string& page) { return absl::StrSplit(page, '\n'); }

std::string Quoted(const std::string& name) { return absl::StrCat("`", name, "`"); }

// One field of a row. **`name`** is required; the other names of the row share its defaults.
struct Documented {
  bool is_required = false;
  std::string fallback;
  std::string belongs_to;  // from a column that only a direction's and feedback's tables have
  std::string row;
};
using Fields = std::multimap<std::string, Documented>;

// `prefix` comes before the names in a table that leaves it out.
void AddRow(const std::string& prefix, const std::string& line, size_t columns, Fields* fields) {
  std::vector<std::string> cells = absl::StrSplit(line, '|');
  for (std::string& cell : cells) absl::StripAsciiWhitespace(&cell);
  const std::vector<std::string> quoted = absl::StrSplit(cells[0], '`');
  const std::vector<std::string> defaults =
      absl::StrSplit(absl::StrReplaceAll(cells[columns - 2], {{"`", ""}}), ", ");
  std::string path = prefix;
  for (size_t i = 1, next = 0; i < quoted.size(); i += 2) {
    Documented field;
    field.is_required = absl::EndsWith(quoted[i - 1], "**");
    field.row = line;
    if (columns == 4) field.belongs_to = cells[1];
    if (!field.is_required) field.fallback = defaults.at(defaults.size() == 1 ? 0 : next++);
    const bool goes_on = absl::StartsWith(quoted[i], ".");  // `evaluation.compressed`, `.every`
    if (goes_on) path.resize(path.find_last_of('.'));
    path = goes_on ? path + quoted[i] : prefix + quoted[i];
    fields->emplace(path, field);
  }
}

// Returns the fields by path, such as "model.width"; those of a direction's entry as
// "direction.bits".
Fields ReadFields() {
  Fields fields;
  std::string heading, prefix;
  size_t columns = 0;
  bool in_table = false;
  for (const std::string& line : Lines(Page("docs/experiment_file.md"))) {
    if (absl::StartsWith(line, "#")) heading = absl::StrReplaceAll(line, {{"#", ""}, {"`", ""}});
    const bool is_row = absl::StartsWith(line, "|");
    if (is_row && !in_table) {
      columns =
          absl::StrContains(line, "default") ? std::count(line.begin(), line.end(), '|') - 1 : 0;
      prefix = absl::StrContains(heading, " and ") || heading == " Fields"
                   ? ""
                   : absl::StrCat(heading.substr(1), ".");
      if (absl::StrContains(line, ".`")) prefix = line.substr(3, line.find(".`") - 2);
      if (absl::StrContains(line, "| field | belongs")) prefix = "direction.";
    } else if (is_row && columns > 0 && !absl::StartsWith(line, "|-")) {
      AddRow(prefix, line.substr(1), columns, &fields);
    }
    in_table = is_row;
  }
  return fields;
}

// If one alternative has another default, the row must state it with the alternative's name.
void ExpectDefault(const std::string& alternative, const std::string& fallback,
                   const Documented& field) {
  if (field.fallback == fallback) return;
  EXPECT_THAT(field.row, AllOf(HasSubstr(fallback), HasSubstr(Quoted(alternative))));
}

bool NamesACodec(const std::string& text) {
  for (const CodecRow& row : CodecRows()) {
    if (absl::StrContains(text, Quoted(row.name))) return true;
  }
  return false;
}

TEST(ExperimentFileTest, HasEveryParameterOfEveryCodec) {
  const Fields fields = ReadFields();
  for (const CodecRow& row : CodecRows()) {
    const CodecSpec spec = DefaultSpec(row.value);
    VisitAllParameters(spec, [&](const char* name, const auto&, const auto& use) {
      SCOPED_TRACE(absl::StrCat(row.name, " ", name));
      int rows = 0;
      const auto [first, last] = fields.equal_range(absl::StrCat("direction.", name));
      for (auto it = first; it != last; ++it) {
        const Documented& field = it->second;
        const bool is_values =
            use.unmet != nullptr && std::string(use.unmet).find("values uniform") == 0;
        const bool belongs = is_values ? absl::StrContains(field.belongs_to, "`values: uniform`")
                                       : absl::StrContains(field.belongs_to, Quoted(row.name)) ||
                                             !NamesACodec(field.belongs_to);
        if (!belongs) continue;
        ++rows;
        ExpectDefault(row.name, DefaultText(use.fallback, use.presence), field);
        EXPECT_EQ(field.is_required, use.presence == Presence::kRequired && use.unmet == nullptr);
      }
      EXPECT_EQ(rows, 1);
    });
  }
}

TEST(ExperimentFileTest, HasEveryFieldThatBelongsToAChoice) {
  const Fields fields = ReadFields();
  const auto expect_rows = [&](const google::protobuf::Message& message, const std::string& path) {
    for (const Alternative& alternative : ChoiceOf(message)->alternatives) {
      for (const ChoiceField& wanted : alternative.fields) {
        SCOPED_TRACE(absl::StrCat(path, wanted.name, " of ", alternative.name));
        const auto found = fields.find(path + wanted.name);
        ASSERT_NE(found, fields.end());
        const bool is_required = absl::c_linear_search(alternative.required, wanted.name);
        EXPECT_EQ(found->second.is_required, is_required);
        if (wanted.is_written) {
          ExpectDefault(alternative.name, wanted.fallback, found->second);
        }
      }
    }
  };
  expect_rows(FeedbackConfig(), "feedback.");
  expect_rows(BottleneckConfig(), "bottleneck.");
  expect_rows(LrScheduleConfig(), "lr_schedule.");
  expect_rows(OptimizerConfig(), "optimizer.");
  expect_rows(OuterConfig(), "replicas.outer.");
  expect_rows(DataConfig(), "data.");
  expect_rows(ModelConfig(), "model.");
  expect_rows(RopeScalingConfig(), "rope_scaling.");
}

TEST(ExperimentFileTest, HasEveryLayer) {
  const std::string page = Page("docs/experiment_file.md");
  for (const Alternative& layer : ChoiceOf(LayerConfig())->alternatives) {
    std::string row;
    for (const std::string& line : Lines(page.substr(page.find("| kind | takes |")))) {
      const std::string kinds = line.substr(0, line.find(" | "));
      if (absl::StrContains(kinds, Quoted(layer.name))) row = line;
    }
    for (const std::string& required : layer.required) {
      EXPECT_THAT(row, HasSubstr(absl::StrCat("**`", required, "`**"))) << layer.name;
    }
    for (const ChoiceField& field : layer.fields) {
      EXPECT_THAT(row, HasSubstr(Quoted(field.name))) << layer.name;
      if (!field.is_written) continue;
      EXPECT_THAT(absl::StrReplaceAll(row, {{"`", ""}}),
                  HasSubstr(absl::StrCat(field.name, " (", field.fallback, ")")))
          << layer.name;
    }
  }
}

TEST(ExperimentFileTest, HasTheDefaultsOfEveryExperiment) {
  const Fields fields = ReadFields();
  const std::function<void(const YamlNode&, const std::string&)> check =
      [&](const YamlNode& node, const std::string& path) {
        for (size_t i = 0; i < node.keys.size(); ++i) {
          check(node.items[i], path.empty() ? node.keys[i] : absl::StrCat(path, ".", node.keys[i]));
        }
        if (node.kind != YamlNode::Kind::kScalar || path == "name") return;  // "the file's name"
        const auto found = fields.find(path);
        ASSERT_NE(found, fields.end()) << path;
        EXPECT_EQ(found->second.fallback, node.text) << path;
      };
  check(*ParseYaml(kExperimentDefaults, "defaults"), "");
}

TEST(ExperimentFileTest, HasEveryFieldOfTheSchema) {
  const std::string page = Page("docs/experiment_file.md");
  const std::function<void(const google::protobuf::Descriptor*)> check =
      [&](const google::protobuf::Descriptor* message) {
        for (int i = 0; i < message->field_count(); ++i) {
          const google::protobuf::FieldDescriptor* field = message->field(i);
          const google::protobuf::Descriptor* below = field->message_type();
          if (field->is_map()) below = below->FindFieldByName("value")->message_type();
          if (below != nullptr && below != message) check(below);
          const bool stands = absl::StrContains(page, Quoted(field->name())) ||
                              absl::StrContains(page, absl::StrCat(".", field->name(), "`")) ||
                              absl::StrContains(page, absl::StrCat("`", field->name(), ".")) ||
                              absl::StrContains(page, absl::StrCat(field->name(), ": "));
          EXPECT_TRUE(stands) << field->full_name();
        }
      };
  check(Experiment::descriptor());
}

TEST(CompressionPageTest, HasEveryCodecAndParameter) {
  const std::string page = Page("docs/compression.md");
  for (const CodecRow& row : CodecRows()) {
    if (row.is_plugin) continue;  // its payload is the library's
    EXPECT_THAT(page, HasSubstr(absl::StrCat("\n## ", row.name, "\n")));
    const CodecSpec spec = DefaultSpec(row.value);
    VisitAllParameters(spec, [&](const char* name, const auto&, const auto&) {
      const bool stands = absl::StrContains(page, Quoted(name)) ||
                          absl::StrContains(page, absl::StrCat("`", name, ": ")) ||
                          absl::StrContains(page, absl::StrCat("\n## ", name));
      EXPECT_TRUE(stands) << row.name << " " << name;
    });
  }
}

}  // namespace
}  // namespace thinwire
