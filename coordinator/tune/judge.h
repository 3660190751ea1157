// Judgement of a rung's candidates: how much they lose, how many more steps they need, which of
// them go on, and when each would reach the target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/tune/cuts.h"
#include "proto/tune.pb.h"

namespace thinwire {

// One run of a rung, of a candidate or of `none`.
struct TrainedRun {
  std::string name;
  uint64_t seed = 0;
  std::vector<double> losses;  // of training, one per step
  double compressed = 0;       // at the end of the run: accuracy in per cent, or loss in nats
  // The same without compression in evaluation, if it was measured.
  std::optional<double> uncompressed;
};

// The runs of one rung.
struct TrainedRung {
  bool is_loss = false;  // True if runs are judged by loss in nats, where less is better.
  uint64_t steps = 0;    // of each run
  std::vector<TrainedRun> runs;
};

// Returns how many steps of the codec are worth one step of `none`: the number of steps divided by
// the number after which `none` was where the codec ended. Both curves are from the same batches.
// Where a curve is, is the mean of a fifth of the steps: the codec's last fifth is compared with
// each such window of `none`. The ratio is at least 1, as noise must not make a codec look faster
// than `none`. It is at most about 5, the value if the codec ended worse than the first fifth of
// `none`. Both curves have at least 1 step.
double StepsRatio(const std::vector<double>& none, const std::vector<double>& losses);

// Fills in the results of `rung`, the `number`-th, for `none` and the standing candidates. Then
// these candidates fall:
// - those without a run in the rung, as theirs failed (`failures` has the reason);
// - those whose loss exceeds `max_loss` with its whole interval, if there are seeds enough for an
//   interval;
// - with several seeds, those that another standing candidate beats in step time while it loses no
//   more and takes no more steps;
// - then all but the first `places` in the order of Ranked(2 x `max_loss`).
void JudgeRung(const TrainedRung& rung, uint32_t number, double max_loss, size_t places,
               const std::map<std::string, std::string>& failures, TuneCandidates* all);

// Returns the standing candidates, best first. Those whose mean loss is within `allowed` come
// first, in the order of steps ratio times step time, which is how soon they reach any target. The
// others follow by loss.
std::vector<TuneCandidate*> Ranked(double allowed, TuneCandidates* all);

// Prediction of the accuracy (per cent) or the loss (nats) of `none` after a number of steps. The
// error, which is the loss or the per cent that are wrong, is taken to be a power of the steps. Its
// exponent comes from the first seed in the first and the last rung; the curve then passes through
// the mean of the last rung.
struct Trend {
  double steps = 0, error = 0;  // of the last rung
  double slope = 0;             // d log(error) / d log(steps)
  bool is_loss = false;

  // Returns the loss in nats, or the per cent that are wrong, after `steps_then` steps.
  double ErrorAt(double steps_then) const;
  // Returns the loss in nats, or the accuracy in per cent, after `steps_then` steps.
  double ValueAt(double steps_then) const;
  // Returns the number of steps to `target`; nothing if the trend never reaches it.
  std::optional<double> StepsTo(double target) const;
};
// Returns the trend of `none` from the first and the last rung.
Trend TrendOf(const TrainedRung& first, const TrainedRung& last);

// Sets target, predicted, the times, choice and why of a report whose rungs have been judged. A
// loss in the last rung is scaled by the ratio of the errors of `none` at the experiment's end and
// in that rung. `trend` is null if nothing was trained; then the choice is `none`.
void Conclude(const Trend* trend, TuneReport* report);

}  // namespace thinwire
