// What a rung says of its candidates: how much they lose, how many more steps they take, who goes
// on, and when each would reach the target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/tune/cuts.h"
#include "proto/tune.pb.h"

namespace thinwire {

// One run of a rung, of a candidate or `none`.
struct TrainedRun {
  std::string name;
  uint64_t seed = 0;
  std::vector<double> losses;  // of training, by step
  double compressed = 0;       // at its end: per cent of accuracy, or nats
  std::optional<double> uncompressed;
};

struct TrainedRung {
  bool is_loss = false;  // what runs are judged by: nats, less is better
  uint64_t steps = 0;    // of each run
  std::vector<TrainedRun> runs;
};

// Steps that `losses` stand for, for one of `none` with the same batches: where the mean of the
// last fifth of `losses` is, of as many steps each, none's mean was so many steps earlier. At least
// 1: noise gives no codec steps for nothing. At most the inverse of that fifth, where it is worse
// than none's first. Both as long, at least 1.
double StepsRatio(const std::vector<double>& none, const std::vector<double>& losses);

// Fills in what this rung, the `number`-th, says of the standing candidates and `none`, and lets
// fall
//  those of which it has no run (they failed; `failures` has why);
//  those whose loss is beyond `max_loss` with its whole interval, where there are seeds for one;
//  with several seeds, those that another standing one beats in step time while it is no worse in
//  loss and takes no more steps;
//  then all but the first `places` in the order of Ranked with twice `max_loss`.
void JudgeRung(const TrainedRung& rung, uint32_t number, double max_loss, size_t places,
               const std::map<std::string, std::string>& failures, TuneCandidates* all);

// Standing candidates, the best first. Of those whose mean loss is within `allowed` the fastest to
// any target, by steps ratio times step time, behind them the others by loss.
std::vector<TuneCandidate*> Ranked(double allowed, TuneCandidates* all);

// What `none` reaches, per cent or nats, by the number of its steps: nats, or the per cent that are
// wrong, are a power of the steps, through the first seed of the first and of the last rung, moved
// to the mean of the last.
struct Trend {
  double steps = 0, error = 0;  // of the last rung
  double slope = 0;             // of the error's logarithm by that of the steps
  bool is_loss = false;

  double ErrorAt(double steps_then) const;  // nats, or the per cent that are wrong
  double ValueAt(double steps_then) const;
  // None where the trend never gets there.
  std::optional<double> StepsTo(double target) const;
};
Trend TrendOf(const TrainedRung& first, const TrainedRung& last);

// Sets target, predicted, the times, choice and why of a report whose rungs have been judged.
// Losses of the last rung count in proportion to none's error then and at the experiment's end.
// `trend` is null where nothing was trained: then `none` is the choice.
void Conclude(const Trend* trend, TuneReport* report);

}  // namespace thinwire
