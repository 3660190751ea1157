// Reading and writing safetensors files on disk.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "base/safetensors.h"

namespace thinwire {

// A file and its bytes, into which its tensors point.
struct TensorFile {
  std::unique_ptr<const std::string> bytes;
  Safetensors contents;
};

// Reads a whole file. NotFound, or the system's error, if it cannot be read; DataLoss if it is
// malformed. Both name the file.
absl::StatusOr<TensorFile> ReadTensorFile(const std::string& path);

// A file of which only the header is in memory. It stays open, so a later replacement in the folder
// is not seen.
class OpenTensorFile {
 public:
  // Opens a file. Errors as in ReadTensorFile.
  static absl::StatusOr<OpenTensorFile> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const SafetensorsHeader& header() const { return header_; }
  uint64_t data_bytes() const { return data_bytes_; }

  // Passes the bytes of one of the header's tensors to `sink`, in order and in pieces of at most
  // `piece_bytes`; stops at its first error. DataLoss names the file if it has become shorter.
  // Thread-safe.
  absl::Status Read(const TensorPlace& tensor, size_t piece_bytes, const FileSink& sink) const;

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  OpenTensorFile(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}
  // Reads the bytes [at, at + size) of the file.
  absl::Status ReadAt(uint64_t at, size_t size, std::string* bytes) const;
  absl::Status ReadHeader();

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  SafetensorsHeader header_;
  uint64_t data_at_ = 0;  // from the beginning of the file
  uint64_t data_bytes_ = 0;
};

// Writes a file, which appears when it is complete and replaces an older one. Errors name it.
absl::Status WriteTensorFile(const std::string& path, const Safetensors& contents);

}  // namespace thinwire
