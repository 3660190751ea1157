// Stage servers as a user names them, with ranges: "stage-{0..3}.stages:4700". Those of several
// pipelines, which carry an experiment's replicas, have two: "r{0..3}s{0..7}:4700".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace thinwire {

class StageAddresses {
 public:
  // Parses texts, each of which is "host:port" or "unix:/path". A text may hold one range:
  // "{A..B}", both ends included and padded with zeros like A. In the last text the range may be
  // "{A..}", which has as many numbers as there are stages. The first text may hold two closed
  // ranges: of carriers, and of the stages of each. InvalidArgument quotes the text and says what
  // is wanted.
  static absl::StatusOr<StageAddresses> Parse(const std::vector<std::string>& texts);

  // Returns whether no stage is named at all.
  bool empty() const { return closed_.empty() && !open_; }
  // Returns how many servers are named; nothing if a range is open.
  std::optional<int> count() const;
  // Returns how many carriers a text with two ranges names, and the stages of each; nothing if
  // there is no such text.
  struct Grid {
    int carriers = 1, stages = 1;
  };
  std::optional<Grid> grid() const { return grid_; }
  // Returns one address for each stage of each carrier, carrier by carrier. InvalidArgument where
  // there are fewer, where there are more and `spares`, which takes them, is null, or where one
  // comes twice.
  absl::StatusOr<std::vector<std::string>> For(const Grid& grid,
                                               std::vector<std::string>* spares = nullptr) const;

 private:
  // Parts of a text with a range: "stage-{8..}:4700" is {"stage-", 8, 1, ":4700"}.
  struct Range {
    std::string before;
    int first = 0;
    int width = 1;  // least number of digits
    std::string behind;

    std::string At(int number) const;
  };

  static absl::StatusOr<std::optional<int>> ParseRange(const std::string& text, Range* range);
  absl::Status Add(const std::string& text, bool is_last);
  absl::Status AddGrid(const std::string& text, size_t end_of_carriers);

  std::vector<std::string> closed_;
  std::optional<Grid> grid_;
  std::optional<Range> open_;  // comes after the closed ones
};

// Returns how many stages each group of servers, "HOST:PORT,HOST:PORT", names; 0 if there are no
// groups or a range is open. InvalidArgument for a group of another size than the first, or a
// server that comes twice; also the errors of Parse.
absl::StatusOr<int> StagesOfGroups(const std::vector<std::string>& groups);

// Returns "host:port" of the stage's /metrics, as seen from here; empty if it serves none, or
// serves them to its own, other machine only. `stage` is the address by which the stage was
// reached, "host:port" or "unix:/path". `reported` is what the stage says of its /metrics
// (AcquireResponse).
std::string MetricsTarget(const std::string& stage, const std::string& reported);

}  // namespace thinwire
