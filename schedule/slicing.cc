#include "schedule/slicing.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace thinwire {
namespace {

constexpr int64_t kLeastPositions = 8, kMostMarks = 128;

// Returns where slices may begin and end: 0, ..., positions.
std::vector<int64_t> MarksOf(int64_t positions) {
  const int64_t apart = std::max(kLeastPositions, (positions + kMostMarks - 1) / kMostMarks);
  std::vector<int64_t> marks;
  for (int64_t mark = 0; mark < positions; mark += apart) marks.push_back(mark);
  marks.push_back(positions);
  return marks;
}

class Slicing {
 public:
  Slicing(int64_t positions, const SequenceCost& cost) : marks_(MarksOf(positions)), cost_(cost) {}

  int last() const { return static_cast<int>(marks_.size()) - 1; }

  // Returns the seconds of the slice between these marks.
  double Seconds(int begin, int end) const {
    const auto share = [this](int mark) {
      return static_cast<double>(marks_[mark]) / static_cast<double>(marks_.back());
    };
    return cost_.seconds * SliceShare(share(begin), share(end), cost_.attention_share) +
           cost_.slice_seconds;
  }

  // Returns the seconds that any slice can take, ascending.
  std::vector<double> AllSeconds() const {
    std::vector<double> all;
    for (int end = 1; end <= last(); ++end) {
      for (int begin = 0; begin < end; ++begin) all.push_back(Seconds(begin, end));
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  // Returns the least sum over slices of which none takes longer than `most`; infinite if there are
  // none. (*begins)[end] is the begin of the slice that ends at that mark.
  double LeastSum(double most, std::vector<int>* begins) const {
    std::vector<double> sums(marks_.size(), std::numeric_limits<double>::infinity());
    sums[0] = 0;
    for (int end = 1; end <= last(); ++end) {
      // A slice that begins earlier takes longer.
      for (int begin = end - 1; begin >= 0; --begin) {
        const double seconds = Seconds(begin, end);
        if (seconds > most) break;
        if (sums[begin] + seconds >= sums[end]) continue;
        sums[end] = sums[begin] + seconds;
        (*begins)[end] = begin;
      }
    }
    return sums.back();
  }

  std::vector<int64_t> Lengths(const std::vector<int>& begins) const {
    std::vector<int64_t> lengths;
    for (int end = last(); end > 0; end = begins[end]) {
      lengths.push_back(marks_[end] - marks_[begins[end]]);
    }
    std::reverse(lengths.begin(), lengths.end());
    return lengths;
  }

 private:
  const std::vector<int64_t> marks_;
  const SequenceCost cost_;
};

}  // namespace

// The number of pairs grows with the square of the positions.
double SliceShare(double begin, double end, double attention_share) {
  return (1 - attention_share) * (end - begin) + attention_share * (end * end - begin * begin);
}

std::vector<int64_t> BestSlices(int64_t positions, int stages, int microbatches,
                                const SequenceCost& cost) {
  assert(positions >= 1 && stages >= 1 && microbatches >= 1);
  const Slicing slicing(positions, cost);
  std::vector<int> begins(slicing.last() + 1), best_begins = begins;
  double best = std::numeric_limits<double>::infinity();
  for (const double most : slicing.AllSeconds()) {
    if ((stages - 1) * most >= best) break;
    const double seconds = microbatches * slicing.LeastSum(most, &begins) + (stages - 1) * most;
    if (seconds >= best) continue;
    best = seconds;
    best_begins = begins;
  }
  return slicing.Lengths(best_begins);
}

}  // namespace thinwire
