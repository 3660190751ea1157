#include "config/fields.h"

namespace thinwire {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

namespace {

std::string KeyOf(const Message& entry) {
  return entry.GetReflection()->GetString(entry, entry.GetDescriptor()->map_key());
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

}  // namespace thinwire
