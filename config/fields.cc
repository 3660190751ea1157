#include "config/fields.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "config/synonyms.h"
#include "proto/experiment.pb.h"

namespace thinwire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string KeyOf(const Message& entry) {
  return entry.GetReflection()->GetString(entry, entry.GetDescriptor()->map_key());
}

// Paths to suggest for field names that occur in several sections, if no section is known.
constexpr const char* kUsual[] = {"compression.activations.codec", "data.context", "model.dropout",
                                  "optimizer.epsilon", "lr_schedule.warmup_steps"};

// Returns the name without case and separators: learningRate and learning-rate equal learning_rate.
std::string Folded(const std::string& name) {
  std::string folded;
  for (const char c : name) {
    if (c != '_' && c != '-') folded += static_cast<char>(std::tolower(static_cast<uint8_t>(c)));
  }
  return folded;
}

// Returns the field of `section` of which `name` is a misspelling; empty if there is none.
std::string Mistyped(const Descriptor& section, const std::string& name) {
  const std::string nearest = NearestName(name, FieldNames(section));
  if (Folded(nearest) == Folded(name)) return nearest;
  const size_t distance = EditDistance(name, nearest);
  return distance < name.size() && distance <= std::max<size_t>(1, name.size() / 4) ? nearest : "";
}

bool IsSynonym(const std::string& name, const Synonyms& of) {
  const std::vector<std::string> names = absl::StrSplit(of.names, ' ');
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& synonym) { return Folded(synonym) == Folded(name); });
}

// Returns the field that `name` is a synonym of in `section`; empty if there is none.
std::string CalledThere(const Descriptor& section, const std::string& name) {
  for (const Synonyms& synonyms : kSynonyms) {
    const FieldDescriptor* field = FieldAt(synonyms.path);
    if (field->containing_type() == &section && IsSynonym(name, synonyms)) return field->name();
  }
  return "";
}

// Returns whether --set accepts the path, which then leads through no list and no map.
bool IsSettable(const std::string& path) {
  for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
    if (FieldAt(path.substr(0, dot))->is_repeated()) return false;
  }
  return true;
}

std::string CalledElsewhere(const std::string& name) {
  for (const Synonyms& synonyms : kSynonyms) {
    if (IsSynonym(name, synonyms) && IsSettable(synonyms.path)) return synonyms.path;
  }
  return "";
}

// Returns the path of the first field of that name, sections nearer to the root first; empty if
// none.
std::string StandsElsewhere(const std::string& name) {
  for (const char* path : kUsual) {
    if (Folded(FieldAt(path)->name()) == Folded(name)) return path;
  }
  std::deque<std::pair<std::string, const Descriptor*>> sections = {{"", Experiment::descriptor()}};
  for (; !sections.empty(); sections.pop_front()) {
    const auto [path, section] = sections.front();
    for (int i = 0; i < section->field_count(); ++i) {
      const FieldDescriptor* field = section->field(i);
      const std::string below = absl::StrCat(path, path.empty() ? "" : ".", field->name());
      if (Folded(field->name()) == Folded(name)) return below;
      if (field->message_type() != nullptr && !field->is_repeated()) {
        sections.emplace_back(below, field->message_type());
      }
    }
  }
  return "";
}

}  // namespace

const FieldDescriptor* FieldOf(const Message& message, const std::string& name) {
  return message.GetDescriptor()->FindFieldByName(name);
}

bool IsSet(const Message& message, const FieldDescriptor* field) {
  return field->is_repeated() ? message.GetReflection()->FieldSize(message, field) > 0
                              : message.GetReflection()->HasField(message, field);
}

bool IsSet(const Message& message, const std::string& name) {
  return IsSet(message, FieldOf(message, name));
}

std::vector<const FieldDescriptor*> SetFields(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  return fields;
}

std::vector<std::string> FieldNames(const google::protobuf::Descriptor& section) {
  std::vector<std::string> names;
  for (int i = 0; i < section.field_count(); ++i) names.push_back(section.field(i)->name());
  return names;
}

std::map<std::string, const Message*> EntriesOf(const Message& message,
                                                const FieldDescriptor* map) {
  std::map<std::string, const Message*> entries;
  for (int i = 0; i < message.GetReflection()->FieldSize(message, map); ++i) {
    const Message& entry = message.GetReflection()->GetRepeatedMessage(message, map, i);
    entries[KeyOf(entry)] = &entry;
  }
  return entries;
}

int IndexOfEntry(const Message& message, const FieldDescriptor* map, const std::string& key) {
  int i = message.GetReflection()->FieldSize(message, map) - 1;
  while (i >= 0 && KeyOf(message.GetReflection()->GetRepeatedMessage(message, map, i)) != key) --i;
  return i;
}

Message* MutableEntry(const std::string& key, const FieldDescriptor* map, Message* message) {
  const int found = IndexOfEntry(*message, map, key);
  if (found >= 0) return message->GetReflection()->MutableRepeatedMessage(message, map, found);
  Message* entry = message->GetReflection()->AddMessage(message, map);
  entry->GetReflection()->SetString(entry, entry->GetDescriptor()->map_key(), key);
  return entry;
}

const FieldDescriptor* FieldAt(const std::string& path) {
  const Descriptor* section = Experiment::descriptor();
  const FieldDescriptor* field = nullptr;
  for (const std::string& name : std::vector<std::string>(absl::StrSplit(path, '.'))) {
    field = section != nullptr ? section->FindFieldByName(name) : nullptr;
    if (field == nullptr) return nullptr;
    section = field->is_map() ? field->message_type()->map_value()->message_type()
                              : field->message_type();
  }
  return field;
}

std::string Suggestion(const Descriptor& section, const std::string& name) {
  std::string meant = CalledThere(section, name);
  if (meant.empty()) meant = Mistyped(section, name);
  if (meant.empty()) meant = PathOf(name);
  return meant.empty() ? NearestName(name, FieldNames(section)) : meant;
}

std::string PathOf(const std::string& name) {
  const std::string path = StandsElsewhere(name);
  return path.empty() ? CalledElsewhere(name) : path;
}

}  // namespace thinwire
