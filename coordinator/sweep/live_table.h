// What a terminal shows while a sweep runs: a line for each run, redrawn in place.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace thinwire {

struct LiveRow {
  std::string name;
  std::string state;     // "waits", "runs", "done", "failed"
  std::string progress;  // "epoch 2/12  loss 0.1234  accuracy 97.1 %  42s left"
  bool is_running = false;
};

// How far the run in `folder` is, by the last line of its metrics.jsonl, and how long it says in
// its log that it still takes; empty before its first step.
std::string ProgressOf(const std::string& folder, const std::string& log, unsigned epochs);

// At most `lines` lines of at most `columns` characters. Where there are more rows, those that run
// and a line that counts the others by state.
std::string LiveLines(const std::vector<LiveRow>& rows, size_t columns, size_t lines);

// Draws over what it drew before.
class LiveTable {
 public:
  explicit LiveTable(FILE* out) : out_(out) {}
  void Draw(const std::string& lines);

 private:
  FILE* out_;
  size_t drawn_ = 0;  // lines
};

}  // namespace thinwire
