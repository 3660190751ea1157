#include "coordinator/fleet/stage_addresses.h"

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/annotated.h"
#include "base/host_port.h"
#include "base/status.h"

namespace thinwire {
namespace {

constexpr int kMostStages = 1 << 16;

absl::Status NotWanted(const std::string& text, const std::string& wanted) {
  return absl::InvalidArgumentError(absl::StrCat("\"", text, "\", want ", wanted));
}

bool IsNumber(const std::string& text, int* number) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos &&
         absl::SimpleAtoi(text, number) && *number < kMostStages;
}

absl::Status CheckAddress(const std::string& address) {
  if (absl::StartsWith(address, "unix:")) return absl::OkStatus();
  ASSIGN_OR_RETURN(const HostPort parsed, ParseHostPort(address));
  if (parsed.host == "*") return NotWanted(address, "the address of one server");
  return parsed.port > 0 ? absl::OkStatus()
                         : NotWanted(address, "the port that the stage listens at");
}

absl::Status CheckDistinct(const std::vector<std::string>& addresses) {
  std::set<std::string> met;
  for (const std::string& address : addresses) {
    if (!met.insert(address).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", address, "\" comes twice, want a server of its own for each stage"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string StageAddresses::Range::At(int number) const {
  return absl::StrFormat("%s%0*d%s", before, width, number, behind);
}

// Returns the last number of the range, or nothing if it is open.
absl::StatusOr<std::optional<int>> StageAddresses::ParseRange(const std::string& text,
                                                              Range* range) {
  const size_t begin = text.find('{'), dots = text.find("..", begin), end = text.find('}', begin);
  if (end == text.npos || dots == text.npos || dots > end ||
      text.find_first_of("{}", end + 1) != text.npos) {
    return NotWanted(text, "one range like {0..3}, or {0..} for all stages from there on");
  }
  const std::string first = text.substr(begin + 1, dots - begin - 1);
  const std::string last = text.substr(dots + 2, end - dots - 2);
  range->before = text.substr(0, begin);
  range->behind = text.substr(end + 1);
  int last_number = 0;
  if (!IsNumber(first, &range->first) || (!last.empty() && !IsNumber(last, &last_number))) {
    return NotWanted(text, absl::StrCat("numbers below ", kMostStages, " as ends of its range"));
  }
  if (!last.empty() && last_number < range->first) {
    return NotWanted(text, "a range that does not end before it begins");
  }
  if (first[0] == '0') range->width = static_cast<int>(first.size());
  RETURN_IF_ERROR(CheckAddress(range->At(range->first)));
  if (last.empty()) return std::optional<int>();
  return std::optional<int>(last_number);
}

// Adds "r{0..3}s{0..7}:4700", whose first range ends at `end_of_carriers`, its brace included.
absl::Status StageAddresses::AddGrid(const std::string& text, size_t end_of_carriers) {
  Range carriers;
  // The second range is no part of an address yet.
  ASSIGN_OR_RETURN(const std::optional<int> last,
                   ParseRange(text.substr(0, end_of_carriers) + ":1", &carriers));
  if (!last || !closed_.empty()) {
    return NotWanted(text, "two ranges in the first address only, with an end of both");
  }
  for (int i = carriers.first; i <= *last; ++i) {
    const std::string of_carrier = carriers.At(i);
    RETURN_IF_ERROR(Add(of_carrier.substr(0, of_carrier.size() - 2) + text.substr(end_of_carriers),
                        /*is_last=*/false));
  }
  const int count = *last - carriers.first + 1;
  grid_ = Grid{count, static_cast<int>(closed_.size()) / count};
  return absl::OkStatus();
}

absl::Status StageAddresses::Add(const std::string& text, bool is_last) {
  if (text.find_first_of("{}") == text.npos) {
    closed_.push_back(text);
    return CheckAddress(text);
  }
  const size_t end = text.find('}', text.find('{'));
  if (end != text.npos && text.find('{', end) != text.npos) return AddGrid(text, end + 1);
  Range range;
  ASSIGN_OR_RETURN(const std::optional<int> last, ParseRange(text, &range));
  if (!last) {
    if (!is_last) return NotWanted(text, "an end of its range, as other addresses follow");
    open_ = range;
    return absl::OkStatus();
  }
  for (int i = range.first; i <= *last; ++i) closed_.push_back(range.At(i));
  return absl::OkStatus();
}

absl::StatusOr<StageAddresses> StageAddresses::Parse(const std::vector<std::string>& texts) {
  StageAddresses addresses;
  for (const std::string& text : texts) {
    RETURN_IF_ERROR(addresses.Add(text, &text == &texts.back()));
  }
  return addresses;
}

std::optional<int> StageAddresses::count() const {
  return open_ ? std::nullopt : std::optional<int>(static_cast<int>(closed_.size()));
}

absl::StatusOr<std::vector<std::string>> StageAddresses::For(
    const Grid& grid, std::vector<std::string>* spares) const {
  const int stages = grid.carriers * grid.stages;
  std::vector<std::string> addresses = closed_;
  for (int i = 0; open_ && static_cast<int>(addresses.size()) < stages; ++i) {
    addresses.push_back(open_->At(open_->first + i));
  }
  RETURN_IF_ERROR(CheckDistinct(addresses));
  if (spares != nullptr && static_cast<int>(addresses.size()) > stages) {
    spares->assign(addresses.begin() + stages, addresses.end());
    addresses.resize(static_cast<size_t>(stages));
  }
  if (static_cast<int>(addresses.size()) == stages) return addresses;
  const std::string of_carriers =
      grid.carriers > 1 ? absl::StrCat(" for each of ", grid.carriers, " carriers") : std::string();
  return absl::InvalidArgumentError(absl::StrCat(addresses.size(), " addresses, want ", stages,
                                                 ", the experiment's pipeline.stages",
                                                 of_carriers));
}

absl::StatusOr<int> StagesOfGroups(const std::vector<std::string>& groups) {
  int stages = 0;
  std::vector<std::string> all;
  for (const std::string& group : groups) {
    ASSIGN_OR_RETURN(const StageAddresses named,
                     Annotated(StageAddresses::Parse(absl::StrSplit(group, ',')), "--stages"));
    const int count = named.count().value_or(0);
    if (&group != &groups[0] && count != stages) {
      return absl::InvalidArgumentError(absl::StrCat("--stages ", group, ": names ", count,
                                                     " servers, want ", stages,
                                                     " as the first group has"));
    }
    stages = count;
    // An open range has as many numbers as the experiment has stages.
    if (!named.count()) continue;
    ASSIGN_OR_RETURN(const std::vector<std::string> addresses, named.For({1, count}));
    all.insert(all.end(), addresses.begin(), addresses.end());
  }
  RETURN_IF_ERROR(Annotated(CheckDistinct(all), "--stages"));
  return stages;
}

std::string MetricsTarget(const std::string& stage, const std::string& reported) {
  const absl::StatusOr<HostPort> metrics = ParseHostPort(reported);
  if (!metrics.ok()) return "";
  const absl::StatusOr<HostPort> at = ParseHostPort(stage);
  const std::string host = absl::StartsWith(stage, "unix:") || !at.ok() ? "127.0.0.1" : at->host;
  if (IsEveryAddress(metrics->host)) return HostPort{host, metrics->port}.Text();
  if (IsOwnMachine(metrics->host) && !IsOwnMachine(host)) return "";
  return reported;
}

}  // namespace thinwire
