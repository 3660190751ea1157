#include "config/derived.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "config/differences.h"
#include "config/fields.h"
#include "config/overrides.h"
#include "config/resolve.h"
#include "google/protobuf/descriptor.h"

namespace thinwire {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr char kAuto[] = "auto";
constexpr char kModel[] = "model.", kLora[] = "lora.", kPipeline[] = "pipeline.";
// Not derived: counting needs the text itself, and whatever changes the text drops the count
// anyway.
constexpr char kCorpus[] = "data.corpus";

std::string Below(const std::string& path, const std::string& name) {
  return path.empty() ? name : absl::StrCat(path, ".", name);
}

bool IsAuto(const Message& message, const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_STRING &&
         message.GetReflection()->FieldSize(message, field) == 1 &&
         message.GetReflection()->GetRepeatedString(message, field, 0) == kAuto;
}

void Note(const std::string& path, const Message& given, const Message& resolved, Experiment* to);

// Does the same for a map. An entry that nobody gave, such as that of a tied weight, is one path.
void NoteEntries(const std::string& path, const FieldDescriptor* map, const Message& given,
                 const Message& resolved, Experiment* to) {
  const FieldDescriptor* value = map->message_type()->map_value();
  if (value->message_type() == nullptr) return;
  const std::map<std::string, const Message*> entries = EntriesOf(given, map);
  for (const auto& [key, entry] : EntriesOf(resolved, map)) {
    const auto of_given = entries.find(key);
    if (of_given == entries.end()) {
      to->add_derived(Below(path, key));
      continue;
    }
    const Message& from = *of_given->second;
    Note(Below(path, key), from.GetReflection()->GetMessage(from, value),
         entry->GetReflection()->GetMessage(*entry, value), to);
  }
}

// Adds the fields that `resolved` has and `given` lacks.
void Note(const std::string& path, const Message& given, const Message& resolved, Experiment* to) {
  for (const FieldDescriptor* field : SetFields(resolved)) {
    const std::string here = Below(path, field->name());
    if (here == kCorpus) continue;
    if (field->is_map()) {
      NoteEntries(here, field, given, resolved, to);
    } else if (!IsSet(given, field) || (field->is_repeated() && IsAuto(given, field))) {
      to->add_derived(here);
    } else if (!field->is_repeated() && field->message_type() != nullptr) {
      Note(here, given.GetReflection()->GetMessage(given, field),
           resolved.GetReflection()->GetMessage(resolved, field), to);
    }
  }
}

bool IsBelow(const std::string& path, const std::string& section) {
  return path == section || absl::StartsWith(path, absl::StrCat(section, "."));
}

using Paths = std::vector<std::string>;

// Returns those paths whose fields have the values that follow from the rest.
Paths Following(const Experiment& experiment, const Paths& paths) {
  Experiment again = experiment;
  for (const std::string& path : paths) ClearField(path, &again);
  if (!Resolve(&again).ok()) return {};
  const std::vector<FieldDifference> differences = Differences(experiment, again);
  Paths following;
  for (const std::string& path : paths) {
    const auto concerns = [&](const FieldDifference& difference) {
      return IsBelow(difference.path, path) || IsBelow(path, difference.path);
    };
    if (std::none_of(differences.begin(), differences.end(), concerns)) following.push_back(path);
  }
  return following;
}

}  // namespace

void NoteDerived(const Experiment& given, Experiment* resolved) {
  Experiment filled = given;
  if (!FillDefaults(&filled).ok()) return;  // cannot happen: the text is ours
  resolved->clear_derived();
  Note("", filled, Experiment(*resolved), resolved);
}

bool IsDerived(const Experiment& experiment, const std::string& path) {
  return std::any_of(experiment.derived().begin(), experiment.derived().end(),
                     [&](const std::string& section) { return IsBelow(path, section); });
}

void ForgetDerived(const Experiment& overlay, Experiment* experiment) {
  const bool has_other_model = overlay.has_init() || overlay.has_model();
  Paths all, besides_pipeline, of_init, of_adapter;
  for (const std::string& path : experiment->derived()) {
    if (experiment->has_init() && absl::StartsWith(path, kModel)) {
      of_init.push_back(path);
      continue;
    }
    if (experiment->lora().has_init() && absl::StartsWith(path, kLora)) {
      of_adapter.push_back(path);
      continue;
    }
    all.push_back(path);
    if (!absl::StartsWith(path, kPipeline)) besides_pipeline.push_back(path);
  }
  experiment->clear_derived();
  Paths following = Following(*experiment, all);
  // With an edited pipeline, derived cuts may contradict entries about cuts; so the pipeline is
  // left as it is.
  if (following.empty()) following = Following(*experiment, besides_pipeline);
  if (has_other_model) following.insert(following.end(), of_init.begin(), of_init.end());
  if (overlay.lora().has_init()) {
    following.insert(following.end(), of_adapter.begin(), of_adapter.end());
  }
  for (const std::string& path : following) ClearField(path, experiment);
}

}  // namespace thinwire
