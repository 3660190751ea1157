#include "coordinator/files/summary.h"

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "google/protobuf/util/json_util.h"

namespace thinwire {

absl::Status FromJson(const std::string& text, const std::string& place,
                      google::protobuf::Message* message) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto parsed = google::protobuf::util::JsonStringToMessage(text, message, options);
  if (parsed.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      place, ": is no ", message->GetDescriptor()->name(), ": ", parsed.message().ToString()));
}

absl::StatusOr<Summary> ReadSummary(const std::string& dir) {
  const std::string path = dir + "/summary.json";
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  Summary summary;
  RETURN_IF_ERROR(FromJson(text, path, &summary));
  return summary;
}

}  // namespace thinwire
