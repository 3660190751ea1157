#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/feedback/row_place.h"

namespace thinwire {
namespace {

absl::Status ErrorOf(int error, const std::string& path, absl::string_view what) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return absl::Status(full ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kUnavailable,
                      absl::StrCat("state file ", path, ": ", what, ": ", std::strerror(error)));
}

class RowFile final : public RowPlace {
 public:
  RowFile(int file, std::string path, size_t row_bytes)
      : file_(file), path_(std::move(path)), row_(row_bytes) {}
  ~RowFile() override { close(file_); }

  absl::Status Grow() override { return absl::OkStatus(); }
  absl::StatusOr<uint8_t*> Read(size_t row) override {
    RETURN_IF_ERROR(Transfer("reading", row, pread));
    return row_.data();
  }
  uint8_t* ToWrite(size_t /*row*/) override { return row_.data(); }
  absl::Status Write(size_t row) override { return Transfer("writing", row, pwrite); }

 private:
  // Reads or writes the row by `move`, pread or pwrite, which may move fewer bytes than asked for.
  template <typename Move>
  absl::Status Transfer(const char* verb, size_t row, Move move) {
    for (size_t done = 0; done < row_.size();) {
      const off_t offset = static_cast<off_t>(row * row_.size() + done);
      const ssize_t moved = move(file_, row_.data() + done, row_.size() - done, offset);
      if (moved < 0 && errno == EINTR) continue;
      if (moved <= 0) {
        return ErrorOf(moved < 0 ? errno : EIO, path_,
                       absl::StrCat(verb, " ", row_.size(), " bytes of row ", row));
      }
      done += moved;
    }
    return absl::OkStatus();
  }

  const int file_;
  const std::string path_;
  std::vector<uint8_t> row_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RowPlace>> NewRowFile(const std::string& dir, size_t row_bytes) {
  std::string path = absl::StrCat(dir, "/thinwire-state-XXXXXX");
  const int file = mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) return ErrorOf(errno, path, "making it");
  unlink(path.c_str());
  return std::make_unique<RowFile>(file, std::move(path), row_bytes);
}

}  // namespace thinwire
