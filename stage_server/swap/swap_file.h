// A file of one process for what its memory has no room for. It has no name, so nothing is left of
// it when the process ends, however that is.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/owned_descriptor.h"

namespace thinwire {

struct SwapFileOptions {
  std::string folder;  // must be there
  // Most bytes of the file; absent: those of the disk that are free when it is opened, less a
  // margin for others.
  std::optional<uint64_t> most_bytes;
  // Called with a line if reads and writes go through the page cache, as the file system has no
  // direct ones; may be empty. Any thread.
  std::function<void(const std::string&)> on_note;
};

// Reads and writes of ranges that do not overlap may run at once.
class SwapFile {
 public:
  // Multiple of which places, sizes and addresses in memory are.
  static constexpr size_t kUnit = 4096;

  // Opens a file and takes its name away. Errors name the folder.
  static absl::StatusOr<std::unique_ptr<SwapFile>> Open(const SwapFileOptions& options);

  // Writes all of the range or returns an error; ResourceExhausted for a full disk and beyond the
  // limit, with what is wanted and what there is.
  absl::Status Write(uint64_t begin, const void* from, size_t bytes);
  // Reads all of the range. DataLoss if the file ends before.
  absl::Status Read(uint64_t begin, void* to, size_t bytes);

  const std::string& name() const { return name_; }  // "swap file in FOLDER"

 private:
  SwapFile(const SwapFileOptions& options, OwnedDescriptor file, uint64_t most_bytes);
  // Returns whether the file system has refused a direct read or write as such. From then on there
  // are none.
  bool GivesUpDirect(int error, bool was_direct);
  absl::Status NoRoom(uint64_t end, int error) const;

  const SwapFileOptions options_;
  const std::string name_;
  const OwnedDescriptor file_;
  const uint64_t most_bytes_;
  std::atomic<bool> is_direct_{false};
};

}  // namespace thinwire
