#include "coordinator/files/json.h"

#include <cassert>
#include <cmath>
#include <map>

#include "google/protobuf/descriptor.h"

namespace thinwire {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Json = nlohmann::ordered_json;

Json Singular(const Message& message, const FieldDescriptor* field) {
  const Reflection& reflection = *message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.GetInt32(message, field);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.GetInt64(message, field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.GetUInt32(message, field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.GetUInt64(message, field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.GetDouble(message, field);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return reflection.GetFloat(message, field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(message, field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.GetEnum(message, field)->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.GetString(message, field);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(reflection.GetMessage(message, field));
  }
  return nullptr;
}

Json Map(const Message& message, const FieldDescriptor* field) {
  const Reflection& reflection = *message.GetReflection();
  std::map<std::string, Json> sorted;
  for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
    const Message& entry = reflection.GetRepeatedMessage(message, field, i);
    sorted[entry.GetReflection()->GetString(entry, field->message_type()->map_key())] =
        Singular(entry, field->message_type()->map_value());
  }
  Json object = Json::object();
  for (auto& [key, value] : sorted) object[key] = std::move(value);
  return object;
}

Json Element(const Message& message, const FieldDescriptor* field, int i) {
  const Reflection& reflection = *message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(reflection.GetRepeatedMessage(message, field, i));
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.GetRepeatedUInt32(message, field, i);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.GetRepeatedUInt64(message, field, i);
    default:
      assert(field->cpp_type() == FieldDescriptor::CPPTYPE_STRING);
      return reflection.GetRepeatedString(message, field, i);
  }
}

Json Repeated(const Message& message, const FieldDescriptor* field) {
  Json array = Json::array();
  for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
    array.push_back(Element(message, field, i));
  }
  return array;
}

void NameNonFinite(Json* json) {
  if (json->is_number_float()) {
    const double number = json->get<double>();
    if (std::isnan(number)) *json = "NaN";
    if (std::isinf(number)) *json = number > 0 ? "Infinity" : "-Infinity";
  } else if (json->is_structured()) {
    for (Json& element : *json) NameNonFinite(&element);
  }
}

}  // namespace

Json ToJson(const Message& message) {
  Json object = Json::object();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    Json& value = object[field->name()];
    if (field->is_map()) {
      value = Map(message, field);
    } else if (field->is_repeated()) {
      value = Repeated(message, field);
    } else if (!field->has_presence() || message.GetReflection()->HasField(message, field)) {
      value = Singular(message, field);
    } else {
      value = nullptr;
    }
  }
  return object;
}

Json ToExactJson(const Message& message) {
  Json json = ToJson(message);
  NameNonFinite(&json);
  return json;
}

std::string JsonText(const Json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace thinwire
