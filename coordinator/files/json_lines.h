// A file with one JSON object a line that grows while a run goes on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace thinwire {

// Writer of such a file. Errors name the file and the system's message. One thread at a time.
class JsonLines {
 public:
  // Opens `path`; creates it if needed.
  static absl::StatusOr<std::unique_ptr<JsonLines>> Open(const std::string& path);
  ~JsonLines();
  JsonLines(const JsonLines&) = delete;
  JsonLines& operator=(const JsonLines&) = delete;

  // Passes `lines`, which include their line ends, to the system. DataLoss if the file was removed
  // or replaced.
  absl::Status Append(const std::string& lines);

  // Returns the size of the file.
  absl::StatusOr<uint64_t> Bytes() const;
  // Truncates the file to `bytes`, and drops an incomplete last line before that.
  absl::Status Cut(uint64_t bytes);

 private:
  JsonLines(std::string path, int file) : path_(std::move(path)), file_(file) {}

  const std::string path_;
  const int file_;  // owned
};

}  // namespace thinwire
