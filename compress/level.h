// How hard a codec compresses in the course of training. Its level is the kept ratio of topk and
// randomk, the bits of uniform and the rate of ecsq; a higher level sends more and loses less.
// Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "compress/spec.h"

namespace thinwire {

enum class LevelKind : uint8_t {
  kFixed = 0,    // as the codec says
  kByEpoch = 1,  // a table, known to both ends
  kByError = 2,  // the sender follows the error that it measures; frames carry the level
};

struct LevelSpec {
  LevelKind kind = LevelKind::kFixed;
  // kByEpoch: from which epoch on (from 1) which level; before the first, the codec's own.
  std::map<uint32_t, double> by_epoch;
  double target_error = 0;  // kByError: wanted ||m - D(C(m))|| / ||m||
  double min = 0, max = 0;  // kByError: bounds of the level

  // "by_epoch(1: 0.5, 3: 0.1)", "target_error(0.1, 0.02 to 0.5)", "" when fixed.
  std::string ToString() const;
};

// InvalidArgument naming field, the value met and the values wanted: a codec without a level, a
// level out of the codec's range, bounds out of order.
absl::Status CheckLevel(const LevelSpec& spec, const CodecSpec& codec);

// The codec with another level; both as CheckLevel accepts them.
CodecSpec AtLevel(CodecSpec codec, double level);
double LevelOf(const CodecSpec& codec);

// What `codec` is in an epoch; under kByError what it is before the first measurement.
CodecSpec InEpoch(const CodecSpec& codec, const LevelSpec& spec, uint32_t epoch);
// What evaluation uses: the table's last entry, otherwise the codec before the first measurement.
CodecSpec Target(const CodecSpec& codec, const LevelSpec& spec);
// The codec with the most to send that the specification allows: receive limits rest on it.
CodecSpec Largest(const CodecSpec& codec, const LevelSpec& spec);
// The codec with the least to send of all that training uses.
CodecSpec Lowest(const CodecSpec& codec, const LevelSpec& spec);

// OK if a message of that epoch may be coded by `met`. `training` false: by evaluation's codec.
// InvalidArgument names what was met and what is wanted.
absl::Status CheckMet(const CodecSpec& met, const CodecSpec& codec, const LevelSpec& spec,
                      uint32_t epoch, bool training);

// Follows the error: what was measured in one step decides the level of all later ones, by their
// mean, until more is measured. Above the target the level rises one notch (a quarter of the ratio
// or rate, or one bit of uniform), below 0.8 of it falls one. Equal observations give equal levels.
// One thread.
class LevelController {
 public:
  // `codec` as in the experiment.
  LevelController(const CodecSpec& codec, const LevelSpec& spec);

  // The codec of a training message. Steps never fall.
  const CodecSpec& Train(uint32_t epoch, uint64_t step);
  // The codec of evaluation: under kByError the one in force.
  const CodecSpec& Evaluate();
  // The relative error of one message of `step` under the codec of that step; not negative.
  void Observe(uint64_t step, double relative_error);

  // What it remembers, for checkpoints.
  struct State {
    double level = 0;      // in force
    uint64_t step = 0;     // the step whose errors are in the sum
    double error_sum = 0;  // of so many messages
    uint32_t measured = 0;
  };
  State state() const { return {LevelOf(current_), step_, error_sum_, measured_}; }
  // InvalidArgument names what is out of range: a level outside of the bounds, a sum that no errors
  // have. Nothing is changed then. Only kByError.
  absl::Status Restore(const State& state);

 private:
  void Conclude();

  const CodecSpec codec_;
  const LevelSpec spec_;
  CodecSpec current_, target_;
  uint64_t step_ = 0;  // these three as in State
  double error_sum_ = 0;
  uint32_t measured_ = 0;
};

}  // namespace thinwire
