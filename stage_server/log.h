// The server's log: a line per event, with time and level, as text for people or as JSON for
// programs. docs/logs.md describes both.
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
  std::string level = "info";   // the least that is written: debug, info, warning, error or off
  std::string format = "text";  // or json
};

// What a line is about; what is empty is not known, or the line is about the server itself.
struct LogSubject {
  std::string run;
  std::optional<int> stage;
};

class Log {
 public:
  // Lines go to `sink`. InvalidArgument names an option and what it may be.
  static absl::StatusOr<std::unique_ptr<Log>> New(const LogOptions& options, spdlog::sink_ptr sink);
  // Writes nothing.
  Log();

  // `event` is a constant name, as "epoch_end". `message` is one line for people, `fields` an
  // object with what it says for programs. What comes from peers in them is written as
  // PrintableLine has it. Any thread.
  void Write(spdlog::level::level_enum level, const char* event, const LogSubject& subject,
             const std::string& message,
             const nlohmann::ordered_json& fields = nlohmann::ordered_json::object());

 private:
  std::shared_ptr<spdlog::logger> logger_;
  bool is_json_ = false;
};

}  // namespace thinwire
