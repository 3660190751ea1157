// A file of JSON objects, one a line, that grows while a run does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace thinwire {

// Errors name the file and what the system said. One thread at a time.
class JsonLines {
 public:
  // Opens `path`, which is made where there is none.
  static absl::StatusOr<std::unique_ptr<JsonLines>> Open(const std::string& path);
  ~JsonLines();
  JsonLines(const JsonLines&) = delete;
  JsonLines& operator=(const JsonLines&) = delete;

  // Hands `lines`, with their ends, to the system. DataLoss where the file was removed or replaced.
  absl::Status Append(const std::string& lines);

  absl::StatusOr<uint64_t> Bytes() const;
  // Takes what is behind so many off, and a line that its writer did not end.
  absl::Status Cut(uint64_t bytes);

 private:
  JsonLines(std::string path, int file) : path_(std::move(path)), file_(file) {}

  const std::string path_;
  const int file_;  // owned
};

}  // namespace thinwire
