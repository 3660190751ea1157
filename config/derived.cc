#include "config/derived.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "config/differences.h"
#include "config/fields.h"
#include "config/resolve.h"
#include "config/overrides.h"
#include "google/protobuf/descriptor.h"

namespace thinwire {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr char kAuto[] = "auto";
constexpr char kModel[] = "model.", kPipeline[] = "pipeline.";
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

// Records the fields that one message has and the other lacks.
class Notes {
 public:
  explicit Notes(Experiment* to) : to_(*to) {}

  void Walk(const std::string& path, const Message& given, const Message& resolved) {
    std::vector<const FieldDescriptor*> fields;
    resolved.GetReflection()->ListFields(resolved, &fields);
    for (const FieldDescriptor* field : fields) {
      const std::string here = Below(path, field->name());
      if (here == kCorpus) continue;
      if (field->is_map()) {
        WalkMap(here, field, given, resolved);
      } else if (!IsSet(given, field) || (field->is_repeated() && IsAuto(given, field))) {
        to_.add_derived(here);
      } else if (!field->is_repeated() && field->message_type() != nullptr) {
        Walk(here, given.GetReflection()->GetMessage(given, field),
             resolved.GetReflection()->GetMessage(resolved, field));
      }
    }
  }

 private:
  // An entry that nobody gave, such as that of a tied weight, is one path.
  void WalkMap(const std::string& path, const FieldDescriptor* field, const Message& given,
               const Message& resolved) {
    const FieldDescriptor* value = field->message_type()->map_value();
    if (value->message_type() == nullptr) return;
    std::map<std::string, const Message*> entries;  // sorted, as a message's own order is arbitrary
    for (int i = 0; i < resolved.GetReflection()->FieldSize(resolved, field); ++i) {
      const Message& entry = resolved.GetReflection()->GetRepeatedMessage(resolved, field, i);
      entries[KeyOf(field, entry)] = &entry;
    }
    for (const auto& [key, to] : entries) {
      const Message* from = FindEntry(field, given, key);
      if (from == nullptr) {
        to_.add_derived(Below(path, key));
      } else {
        Walk(Below(path, key), from->GetReflection()->GetMessage(*from, value),
             to->GetReflection()->GetMessage(*to, value));
      }
    }
  }

  static std::string KeyOf(const FieldDescriptor* field, const Message& entry) {
    return entry.GetReflection()->GetString(entry, field->message_type()->map_key());
  }

  // Returns null if there is none.
  static const Message* FindEntry(const FieldDescriptor* field, const Message& message,
                                  const std::string& key) {
    for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
      const Message& entry = message.GetReflection()->GetRepeatedMessage(message, field, i);
      if (KeyOf(field, entry) == key) return &entry;
    }
    return nullptr;
  }

  Experiment& to_;
};

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
  Notes(resolved).Walk("", filled, Experiment(*resolved));
}

bool IsDerived(const Experiment& experiment, const std::string& path) {
  return std::any_of(experiment.derived().begin(), experiment.derived().end(),
                     [&](const std::string& section) { return IsBelow(path, section); });
}

void ForgetDerived(const Experiment& overlay, Experiment* experiment) {
  const bool has_other_model = overlay.has_init() || overlay.has_model();
  Paths all, besides_pipeline, of_init;
  for (const std::string& path : experiment->derived()) {
    if (experiment->has_init() && absl::StartsWith(path, kModel)) {
      of_init.push_back(path);
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
  for (const std::string& path : following) ClearField(path, experiment);
}

}  // namespace thinwire
