// Compression level in the course of training: the kept ratio of topk and randomk, the bits of
// uniform, the rate of ecsq. A higher level sends more and loses less. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "compress/spec.h"

namespace thinwire {

// Rule by which the level is chosen.
enum class LevelKind : uint8_t {
  kFixed = 0,    // the codec's own level, always
  kByEpoch = 1,  // from a table that both ends know
  kByError = 2,  // set by the sender from the error it measures; frames carry it
};

// Level of one direction, as experiments give it.
struct LevelSpec {
  LevelKind kind = LevelKind::kFixed;
  // kByEpoch: the level from each listed epoch (counted from 1) on; before the first of them, the
  // codec's own level holds.
  std::map<uint32_t, double> by_epoch;
  double target_error = 0;  // kByError: wanted ||m - D(C(m))|| / ||m||
  double min = 0, max = 0;  // kByError: bounds of the level

  // Returns "by_epoch(1: 0.5, 3: 0.1)", "target_error(0.1, 0.02 to 0.5)", or "" when fixed.
  std::string ToString() const;
};

// InvalidArgument naming field, the value met and the values wanted: a codec without a level, a
// level out of the codec's range, bounds out of order.
absl::Status CheckLevel(const LevelSpec& spec, const CodecSpec& codec);

// Returns the codec with another level; LevelOf returns a codec's level. Both expect what
// CheckLevel accepts.
CodecSpec AtLevel(CodecSpec codec, double level);
double LevelOf(const CodecSpec& codec);

// Returns `codec` as it is in an epoch; under kByError, as it is before the first measurement.
CodecSpec InEpoch(const CodecSpec& codec, const LevelSpec& spec, uint32_t epoch);
// Returns the codec of evaluation: the table's last entry, otherwise the codec before the first
// measurement.
CodecSpec Target(const CodecSpec& codec, const LevelSpec& spec);
// Returns the codec with the most to send that the specification allows; receive limits rest on it.
CodecSpec Largest(const CodecSpec& codec, const LevelSpec& spec);
// Returns the codec with the least to send of all that training uses.
CodecSpec Lowest(const CodecSpec& codec, const LevelSpec& spec);

// Checks that a message of this epoch may be coded by `met`; if `training` is false, by
// evaluation's codec. InvalidArgument names what was met and what is wanted.
absl::Status CheckMet(const CodecSpec& met, const CodecSpec& codec, const LevelSpec& spec,
                      uint32_t epoch, bool training);

// Controller that follows the measured error. The mean error of one step's messages decides the
// level of all later steps, until more is measured. Above the target the level rises one notch (a
// quarter of the ratio or rate, or one bit of uniform); below 0.8 of it, it falls one. Equal
// observations give equal levels. One thread.
class LevelController {
 public:
  // Starts with `codec` as in the experiment.
  LevelController(const CodecSpec& codec, const LevelSpec& spec);

  // Returns the codec of a training message. `step` never decreases from call to call.
  const CodecSpec& Train(uint32_t epoch, uint64_t step);
  // Returns the codec of evaluation: under kByError the one in force.
  const CodecSpec& Evaluate();
  // Records the relative error (not negative) of one message of `step`, coded by the codec of that
  // step.
  void Observe(uint64_t step, double relative_error);

  // State of the controller, for checkpoints.
  struct State {
    double level = 0;      // level in force
    uint64_t step = 0;     // the step whose errors are in the sum
    double error_sum = 0;  // sum over `measured` messages
    uint32_t measured = 0;
  };
  State state() const { return {LevelOf(current_), step_, error_sum_, measured_}; }
  // Restores a state. InvalidArgument names what is out of range: a level outside of the bounds, or
  // a sum that errors cannot have; nothing is changed then. Only for kByError.
  absl::Status Restore(const State& state);

 private:
  // Sets the level from the errors in the sum, and empties the sum.
  void Conclude();

  const CodecSpec codec_;
  const LevelSpec spec_;
  CodecSpec current_, target_;
  uint64_t step_ = 0;  // these three as in State
  double error_sum_ = 0;
  uint32_t measured_ = 0;
};

}  // namespace thinwire
