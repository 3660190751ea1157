#include "data/lines.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/stand_in.h"
#include "base/status.h"
#include "data/unicode.h"
#include "data/unpacked_file.h"

namespace thinwire {
namespace {

// Puts pieces of a file together to lines.
class LineTaker {
 public:
  LineTaker(const std::string& path, const std::function<absl::Status(std::string_view)>& take)
      : path_(path), take_(take) {}

  absl::Status Add(std::string_view piece) {
    if (number_ == 0) RETURN_IF_ERROR(Begin(&piece));
    for (;;) {
      const size_t end = piece.find('\n');
      const std::string_view part = piece.substr(0, end);
      if (rest_.size() + part.size() > kMaxLineBytes) return TooLong();
      if (end == std::string_view::npos) {
        rest_ += part;
        return absl::OkStatus();
      }
      RETURN_IF_ERROR(Take(part));
      piece.remove_prefix(end + 1);
    }
  }
  absl::Status End() { return rest_.empty() ? absl::OkStatus() : Take({}); }

 private:
  absl::Status Begin(std::string_view* piece) {
    RETURN_IF_ERROR(CheckNoStandIn(path_, *piece));
    RETURN_IF_ERROR(CheckNoArchive(path_, *piece));
    piece->remove_prefix(ByteOrderMarkBytes(*piece));
    number_ = 1;
    return absl::OkStatus();
  }
  absl::Status TooLong() const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ":", number_, ": has more than ",
                                                   kMaxLineBytes, " bytes, want no more"));
  }
  absl::Status Take(std::string_view part) {
    absl::Status status;
    if (rest_.empty()) {
      status = take_(part);
    } else {
      rest_ += part;
      status = take_(rest_);
      rest_.clear();
    }
    if (!status.ok()) return Annotated(status, absl::StrCat(path_, ":", number_));
    ++number_;
    return absl::OkStatus();
  }

  const std::string& path_;
  const std::function<absl::Status(std::string_view)>& take_;
  int64_t number_ = 0;  // of the line that comes next; 0: nothing was read
  std::string rest_;    // of a line whose end has not come
};

}  // namespace

absl::Status ForEachLine(const std::string& path,
                         const std::function<absl::Status(std::string_view)>& take) {
  LineTaker taker(path, take);
  RETURN_IF_ERROR(ReadUnpacked(path, [&](std::string_view piece) { return taker.Add(piece); }));
  return taker.End();
}

}  // namespace thinwire
