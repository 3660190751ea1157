#include "compress/checks/outliers.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "compress/codecs/division.h"

namespace thinwire {
namespace {

double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// Returns how many times larger the mean square of first positions is than that of the others.
double FirstPositionRatio(const std::vector<double>& all, const std::vector<double>& others,
                          const Shape& shape) {
  if (shape.rank() != 3 || shape[1] < 2 || Sum(others) == 0) return 0;
  return (Sum(all) - Sum(others)) / Sum(others) * static_cast<double>(shape[1] - 1);
}

}  // namespace

int64_t FoundOutliers::proposed() const {
  const int64_t most = std::clamp<int64_t>(of_channels / kChannelsForOne, 1, kMostProposed);
  return std::min(channels, most);
}

std::string FoundOutliers::ToString() const {
  std::vector<std::string> found;
  if (channels > 0) {
    found.push_back(
        absl::StrFormat("%d of %d channels have a mean square of %.0f to %.0f times the median "
                        "channel's; outliers: %d sends %s as bf16, beside the others",
                        channels, of_channels, kOutlierRatio, channel_ratio, proposed(),
                        proposed() < channels ? "the largest" : "them"));
  }
  if (has_first_position()) {
    found.push_back(
        absl::StrFormat("position 0 has a mean square of %.0f times that of the others; "
                        "first_position: exact sends it as it is",
                        first_position_ratio));
  }
  return absl::StrJoin(found, "; ");
}

absl::StatusOr<FoundOutliers> FindOutliers(const Tensor& x) {
  ASSIGN_OR_RETURN(std::vector<double> squares, ChannelSquares(x, /*first_rows=*/{}));
  ASSIGN_OR_RETURN(const std::vector<double> others,
                   ChannelSquares(x, FirstRowsOf(x.shape(), /*begins_sequences=*/true)));
  FoundOutliers found;
  found.of_channels = static_cast<int64_t>(squares.size());
  found.first_position_ratio = FirstPositionRatio(squares, others, x.shape());
  if (found.has_first_position()) squares = others;
  const auto middle = squares.begin() + static_cast<int64_t>(squares.size() / 2);
  std::nth_element(squares.begin(), middle, squares.end());
  const double median = *middle;
  if (median == 0) return found;
  found.channels = std::count_if(squares.begin(), squares.end(),
                                 [&](double of) { return of >= kOutlierRatio * median; });
  found.channel_ratio = *std::max_element(squares.begin(), squares.end()) / median;
  return found;
}

}  // namespace thinwire
