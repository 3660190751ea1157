// The server's log: one line per event, with time and level, as text or as JSON. docs/logs.md
// describes both.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "spdlog/logger.h"
#include "spdlog/sinks/sink.h"

namespace thinwire {

struct LogOptions {
  std::string level = "info";   // lowest level written: debug, info, warning, error or off
  std::string format = "text";  // or json
};

// The run and stage that a line is about; empty if not known or if it is about the server itself.
struct LogSubject {
  std::string run;
  std::optional<int> stage;
};

class Log {
 public:
  // Makes a log that writes to `sink`. InvalidArgument names an option and its allowed values.
  static absl::StatusOr<std::unique_ptr<Log>> New(const LogOptions& options, spdlog::sink_ptr sink);
  // Makes a log that writes nothing.
  Log();

  // Writes a line. `event` is a constant name such as "epoch_end". `message` is one line for
  // people, and `fields` is an object with the same facts for programs. Text from peers is written
  // as PrintableLine does it. Any thread.
  void Write(spdlog::level::level_enum level, const char* event, const LogSubject& subject,
             const std::string& message,
             const nlohmann::ordered_json& fields = nlohmann::ordered_json::object());

 private:
  std::shared_ptr<spdlog::logger> logger_;
  bool is_json_ = false;
};

}  // namespace thinwire
