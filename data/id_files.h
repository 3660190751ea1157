// Token ids in files that other programs have written, of any size: they are read where they are
// asked for and never stay in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/token_source.h"

namespace thinwire {

// Files one behind another. Ids are little-endian, of 16 or 32 bits. A file of llm.c begins with
// 256 numbers of 32 bits: 20240520, version 1, the number of ids, of 16 bits; or 20240801, version
// 7, the number of ids, of 32 bits; the others do not count. Any other file is ids alone, as
// nanoGPT writes it.
class IdFiles final : public TokenSource {
 public:
  // Opens the files, in this order, and reads their headers. InvalidArgument names a file without a
  // header where `type` is IdType::kHeader, one whose header says another type than `type`, and one
  // that is empty or ends within an id; DataLoss one with a header of another version, or with
  // another number of ids than its header says.
  static absl::StatusOr<std::shared_ptr<IdFiles>> Open(const std::vector<std::string>& paths,
                                                       IdType type);

  int64_t size() const override { return size_; }
  // InvalidArgument names the file, the place in it and the id that is `vocabulary` or more;
  // DataLoss a file that has another length than when it was opened.
  absl::Status Read(int64_t first, absl::Span<int32_t> out) const override;

  // Lets only ids below `vocabulary` be read. At first all below 2^31 are.
  void Restrict(int64_t vocabulary) { vocabulary_ = vocabulary; }

  // The ids of one file.
  struct Extent {
    std::string path;
    int64_t first, ids;  // number of the first one among those of all files, and how many
  };
  std::vector<Extent> extents() const;

  // Reads everything and returns the greatest id. Errors of Read.
  absl::StatusOr<int32_t> GreatestId() const;

 private:
  struct File {
    std::string path;
    int64_t bytes, header_bytes, width;  // of the file, its header and an id
    int64_t first;                       // number of its first id among those of all files
  };

  static absl::StatusOr<File> Inspect(const std::string& path, IdType type);
  absl::Status ReadFrom(const File& file, int64_t first, absl::Span<int32_t> out) const;
  absl::Status CheckIds(const File& file, int64_t first, absl::Span<const int32_t> ids) const;

  std::vector<File> files_;
  int64_t size_ = 0;
  int64_t vocabulary_ = int64_t{1} << 31;
};

}  // namespace thinwire
