// Table of a sweep's runs on a terminal: a line for each run, redrawn in place.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace thinwire {

// One line of the table.
struct LiveRow {
  std::string name;
  std::string state;     // "waits", "runs", "done", "failed"
  std::string progress;  // "epoch 2/12  loss 0.1234  accuracy 97.1 %  42s left"
  bool is_running = false;
};

// Returns how far the run in `folder` is, from the last line of its metrics.jsonl, and the
// remaining time, from its log. Empty before its first step.
std::string ProgressOf(const std::string& folder, const std::string& log, unsigned epochs);

// Returns at most `lines` lines of at most `columns` characters. If there are more rows, it shows
// the running ones and a line that counts the others by state.
std::string LiveLines(const std::vector<LiveRow>& rows, size_t columns, size_t lines);

// Draws lines over those that it drew before.
class LiveTable {
 public:
  explicit LiveTable(FILE* out) : out_(out) {}
  void Draw(const std::string& lines);

 private:
  FILE* out_;
  size_t drawn_ = 0;  // number of lines
};

}  // namespace thinwire
