#include "config/differences.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "config/yaml_message.h"
#include "config/yaml_tree.h"

namespace thinwire {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;  // pairs of path and value

void Flatten(const std::string& path, const YamlNode& node, Fields* fields) {
  if (node.kind != YamlNode::Kind::kMap || node.items.empty()) {
    fields->emplace_back(path, YamlText(node));
    return;
  }
  for (size_t i = 0; i < node.items.size(); ++i) {
    Flatten(path.empty() ? node.keys[i] : absl::StrCat(path, ".", node.keys[i]), node.items[i],
            fields);
  }
}

Fields FieldsOf(const Experiment& experiment) {
  Fields fields;
  Experiment values = experiment;
  values.clear_derived();  // it does not make an experiment different
  const absl::StatusOr<YamlNode> tree = ParseYaml(WriteYaml(values), "resolved");
  if (tree.ok()) Flatten("", *tree, &fields);  // always, as the text is our own
  return fields;
}

std::string ValueIn(const Fields& fields, const std::string& path) {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const auto& field) { return field.first == path; });
  return found == fields.end() ? "" : found->second;
}

}  // namespace

std::vector<FieldDifference> Differences(const Experiment& left, const Experiment& right) {
  const Fields ours = FieldsOf(left), theirs = FieldsOf(right);
  std::vector<FieldDifference> differences;
  for (const auto& [path, value] : ours) {
    const std::string other = ValueIn(theirs, path);
    if (value != other) differences.push_back({path, value, other});
  }
  for (const auto& [path, value] : theirs) {
    if (ValueIn(ours, path).empty()) differences.push_back({path, "", value});
  }
  return differences;
}

}  // namespace thinwire
