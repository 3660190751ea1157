#include "compress/feedback/options.h"

#include "absl/strings/str_cat.h"

namespace thinwire {

absl::Status CheckMessage(const FeedbackOptions& options, const Shape& shape, size_t num_rows) {
  if (shape.rank() == 0 || shape.WithBatch(1) != options.sample) {
    return absl::InvalidArgumentError(absl::StrCat("feedback: message of shape ", shape.ToString(),
                                                   ", want samples of ",
                                                   options.sample.ToString()));
  }
  if (static_cast<size_t>(shape[0]) == num_rows) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("feedback: ", num_rows, " rows for ", shape[0], " samples, want one for each"));
}

}  // namespace thinwire
