// Sorting of more than memory holds.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "data/temporary_file.h"

namespace thinwire {

// An element of a sort, which goes by the key, then by the value.
struct SortRecord {
  uint64_t key, value;

  friend bool operator<(const SortRecord& a, const SortRecord& b) {
    return std::tie(a.key, a.value) < std::tie(b.key, b.value);
  }
};

// Sorts records. As many as `in_memory` are kept in memory; where there are more, sorted runs of
// them lie in a temporary file until they are merged. Not thread-safe.
class ExternalSort {
 public:
  static constexpr size_t kInMemory = size_t{1} << 20;  // 16 MiB

  // Makes a sort whose file, if it needs one, is in `folder`.
  explicit ExternalSort(std::string folder, size_t in_memory = kInMemory)
      : folder_(std::move(folder)), in_memory_(in_memory) {}

  // Adds a record. Errors of TemporaryFile.
  absl::Status Add(const SortRecord& record);

  // Hands all records on in ascending order, once. Errors of TemporaryFile, and the first one of
  // `take`.
  using Take = std::function<absl::Status(const SortRecord&)>;
  absl::Status HandOn(const Take& take);

 private:
  absl::Status WriteRun();
  absl::Status Merge(const Take& take);

  const std::string folder_;
  const size_t in_memory_;
  std::vector<SortRecord> records_;
  std::optional<TemporaryFile> file_;
  std::vector<int64_t> ends_;  // of the runs in the file, in bytes
};

}  // namespace thinwire
