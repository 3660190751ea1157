#include "stage_server/log.h"

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/null_sink.h"

namespace thinwire {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kName[] = "stage_server";
// Times are RFC 3339 in UTC. Write's text ends the JSON object that kJsonPattern begins.
constexpr char kTextPattern[] = "%Y-%m-%dT%H:%M:%S.%eZ %-7l %v";
constexpr char kJsonPattern[] = R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v)";

bool IsLevel(const std::string& name) {
  for (const char* level : {"debug", "info", "warning", "error", "off"}) {
    if (name == level) return true;
  }
  return false;
}

std::string Text(const LogSubject& subject, const std::string& message) {
  std::string text;
  if (!subject.run.empty()) absl::StrAppend(&text, "run ", PrintableLine(subject.run));
  if (subject.stage) {
    absl::StrAppend(&text, text.empty() ? "stage " : ", stage ", *subject.stage);
  }
  return absl::StrCat(text, text.empty() ? "" : ": ", PrintableLine(message));
}

// Returns a JSON object without its opening brace.
std::string JsonRest(const char* event, const LogSubject& subject, const std::string& message,
                     const Json& fields) {
  Json line = {{"event", event}};
  if (!subject.run.empty()) line["run"] = PrintableLine(subject.run);
  if (subject.stage) line["stage"] = *subject.stage;
  line["message"] = PrintableLine(message);
  for (const auto& [key, value] : fields.items()) {
    line[key] = value.is_string() ? Json(PrintableLine(value.get<std::string>())) : value;
  }
  return line.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace).substr(1);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Log>> Log::New(const LogOptions& options, spdlog::sink_ptr sink) {
  if (!IsLevel(options.level)) {
    return absl::InvalidArgumentError(absl::StrCat("--log_level: \"", options.level,
                                                   "\", want debug, info, warning, error or off"));
  }
  if (options.format != "text" && options.format != "json") {
    return absl::InvalidArgumentError(
        absl::StrCat("--log_format: \"", options.format, "\", want text or json"));
  }
  auto log = std::make_unique<Log>();
  log->is_json_ = options.format == "json";
  log->logger_ = std::make_shared<spdlog::logger>(kName, std::move(sink));
  log->logger_->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      log->is_json_ ? kJsonPattern : kTextPattern, spdlog::pattern_time_type::utc));
  log->logger_->set_level(spdlog::level::from_str(options.level));
  log->logger_->flush_on(spdlog::level::debug);
  return log;
}

Log::Log()
    : logger_(std::make_shared<spdlog::logger>(kName,
                                               std::make_shared<spdlog::sinks::null_sink_mt>())) {
  logger_->set_level(spdlog::level::off);
}

void Log::Write(spdlog::level::level_enum level, const char* event, const LogSubject& subject,
                const std::string& message, const Json& fields) {
  if (!logger_->should_log(level)) return;
  const std::string line =
      is_json_ ? JsonRest(event, subject, message, fields) : Text(subject, message);
  logger_->log(level, spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace thinwire
