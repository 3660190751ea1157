#include "coordinator/results/columns.h"

#include "absl/strings/str_join.h"

namespace thinwire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

std::string TypeOf(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return "REAL";
    case FieldDescriptor::CPPTYPE_STRING:
      return "TEXT";
    default:
      return "INTEGER";
  }
}

void Add(const Descriptor* message, const std::vector<std::string>& above,
         std::vector<Column>* columns) {
  for (int i = 0; i < message->field_count(); ++i) {
    const FieldDescriptor* field = message->field(i);
    if (field->is_repeated()) continue;  // maps too
    std::vector<std::string> path = above;
    path.push_back(field->name());
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      Add(field->message_type(), path, columns);
    } else {
      columns->push_back({absl::StrJoin(path, "_"), TypeOf(*field), path});
    }
  }
}

}  // namespace

std::vector<Column> ColumnsOf(const Descriptor* message) {
  std::vector<Column> columns;
  Add(message, {}, &columns);
  return columns;
}

nlohmann::ordered_json ValueOf(const Column& column, const nlohmann::ordered_json& json) {
  const nlohmann::ordered_json* at = &json;
  for (const std::string& step : column.path) {
    if (!at->is_object() || !at->contains(step)) return nullptr;
    at = &(*at)[step];
  }
  return *at;
}

}  // namespace thinwire
