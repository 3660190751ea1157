#include "coordinator/sweep/live_table.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "coordinator/fleet/child_process.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

using Json = nlohmann::json;

double NumberOr(const Json& json, const char* key, double otherwise) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : otherwise;
}

// Returns "42s" for a line "... 42s left"; empty if it has no such end.
std::string LeftIn(const std::string& line) {
  const size_t end = line.rfind(" left");
  if (end == std::string::npos || end == 0) return "";
  const size_t begin = line.rfind(' ', end - 1);
  return begin == std::string::npos ? "" : line.substr(begin + 1, end - begin - 1);
}

// Returns the last line of a step or an epoch, which an evaluation's may follow.
Json LastTrained(const std::string& path) {
  const std::vector<std::string> lines = LastLines(path, 2);
  for (auto text = lines.rbegin(); text != lines.rend(); ++text) {
    Json line = Json::parse(*text, nullptr, false);
    if (!line.is_object()) return line;
    const auto type = line.find("type");
    if (type == line.end() || *type != "evaluation") return line;
  }
  return Json();
}

std::string Cut(const std::string& line, size_t columns) { return line.substr(0, columns); }

}  // namespace

std::string ProgressOf(const std::string& folder, const std::string& log, unsigned epochs) {
  const Json line = LastTrained(folder + "/metrics.jsonl");
  if (!line.is_object()) return "";
  // Takes the training part of an epoch's line, or the line of a step itself.
  const auto train = line.find("train");
  const Json& measured = train != line.end() && train->is_object() ? *train : line;
  std::string text = absl::StrFormat("epoch %.0f/%u  loss %.4f", NumberOr(line, "epoch", 0), epochs,
                                     NumberOr(measured, "loss", 0));
  const double accuracy = NumberOr(measured, "accuracy", -1);  // scores have none
  if (accuracy >= 0) absl::StrAppendFormat(&text, "  accuracy %.1f %%", 100 * accuracy);
  for (const std::string& said : LastLines(log, 1)) {
    const std::string left = LeftIn(said);
    if (!left.empty()) absl::StrAppend(&text, "  ", PrintableLine(left), " left");
  }
  return text;
}

std::string LiveLines(const std::vector<LiveRow>& rows, size_t columns, size_t lines) {
  size_t width = 0;
  std::map<std::string, size_t> states;
  for (const LiveRow& row : rows) {
    width = std::max(width, row.name.size());
    ++states[row.state];
  }
  const bool all = rows.size() <= lines;
  std::vector<std::string> shown;
  for (const LiveRow& row : rows) {
    if (!all && (!row.is_running || shown.size() + 1 >= lines)) continue;
    shown.push_back(Cut(absl::StrFormat("%-*s  %-7s%s%s", static_cast<int>(width), row.name,
                                        row.state, row.progress.empty() ? "" : "  ", row.progress),
                        columns));
  }
  if (!all) {
    shown.push_back(Cut(absl::StrJoin(states, ", ",
                                      [](std::string* out, const auto& state) {
                                        absl::StrAppend(out, state.second, " ", state.first);
                                      }),
                        columns));
  }
  return absl::StrJoin(shown, "\n") + "\n";
}

void LiveTable::Draw(const std::string& lines) {
  if (drawn_ > 0) std::fprintf(out_, "\x1b[%zuA\x1b[J", drawn_);
  std::fputs(lines.c_str(), out_);
  std::fflush(out_);
  drawn_ = static_cast<size_t>(std::count(lines.begin(), lines.end(), '\n'));
}

}  // namespace thinwire
