// The stage servers that a user names, with ranges: "stage-{0..3}.stages:4700".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace thinwire {

class StageAddresses {
 public:
  // Each text is "host:port" or "unix:/path" and may hold one range: "{A..B}", both ends included
  // and padded with zeros as A is, or, in the last text, "{A..}", which goes on for as many stages
  // as there are. InvalidArgument quotes the text and says what is wanted.
  static absl::StatusOr<StageAddresses> Parse(const std::vector<std::string>& texts);

  // Whether no stage is named at all.
  bool empty() const { return closed_.empty() && !open_; }
  // How many stages are named; none while a range is open.
  std::optional<int> count() const;
  // Returns one address for each of `stages` stages. InvalidArgument where there are fewer, where
  // there are more and `spares`, which takes them, is null, or where one comes twice.
  absl::StatusOr<std::vector<std::string>> For(int stages,
                                               std::vector<std::string>* spares = nullptr) const;

 private:
  // "stage-{8..}:4700" is {"stage-", 8, 1, ":4700"}.
  struct Range {
    std::string before;
    int first = 0;
    int width = 1;  // digits, at least
    std::string behind;

    std::string At(int number) const;
  };

  static absl::StatusOr<std::optional<int>> ParseRange(const std::string& text, Range* range);
  absl::Status Add(const std::string& text, bool is_last);

  std::vector<std::string> closed_;
  std::optional<Range> open_;  // behind the closed ones
};

// Stages that each group of servers names, "HOST:PORT,HOST:PORT"; 0 where there are no groups, or a
// range is open. InvalidArgument for a group of another number than the first, for a server that
// comes twice, and errors of Parse.
absl::StatusOr<int> StagesOfGroups(const std::vector<std::string>& groups);

}  // namespace thinwire
