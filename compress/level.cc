#include "compress/level.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/annotated.h"
#include "base/status.h"
#include "compress/codec_table.h"

namespace thinwire {
namespace {

constexpr double kRatioNotch = 1.25;
constexpr double kContent = 0.8;  // errors from this share of the target up to it change nothing

LevelField FieldOf(const CodecSpec& codec) { return CodecRowOf(codec.kind).level; }

absl::Status CheckRange(LevelField of, const char* field, double level) {
  if (of == LevelField::kBits && !(level >= 1 && level <= 8 && level == std::floor(level))) {
    return absl::InvalidArgumentError(
        absl::StrCat("level.", field, " is ", level, ", want whole bits from 1 to 8"));
  }
  if (of == LevelField::kRatio && !(level > 0 && level <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("level.", field, " is ", level, ", want a ratio above 0 and at most 1"));
  }
  return absl::OkStatus();
}

absl::Status CheckOne(const CodecSpec& codec, const char* field, double level) {
  RETURN_IF_ERROR(CheckRange(FieldOf(codec), field, level));
  return Annotated(CheckSpec(AtLevel(codec, level)), absl::StrCat("level.", field));
}

}  // namespace

std::string LevelSpec::ToString() const {
  switch (kind) {
    case LevelKind::kFixed:
      return "";
    case LevelKind::kByEpoch:
      return absl::StrCat("by_epoch(", absl::StrJoin(by_epoch, ", ", absl::PairFormatter(": ")),
                          ")");
    case LevelKind::kByError:
      return absl::StrCat("target_error(", target_error, ", ", min, " to ", max, ")");
  }
  return "";
}

absl::Status CheckLevel(const LevelSpec& spec, const CodecSpec& codec) {
  if (spec.kind == LevelKind::kFixed) return absl::OkStatus();
  if (!(LevelOf(codec) > 0)) {
    return absl::InvalidArgumentError(absl::StrCat("level with codec ", codec.ToString(),
                                                   ", want topk or randomk with a ratio, uniform, "
                                                   "or ecsq with a rate"));
  }
  if (spec.kind == LevelKind::kByEpoch) {
    if (spec.by_epoch.empty()) {
      return absl::InvalidArgumentError("level.by_epoch: no entry, want at least one");
    }
    for (const auto& [epoch, level] : spec.by_epoch) {
      if (epoch == 0) return absl::InvalidArgumentError("level.by_epoch: epoch 0, want 1 or more");
      RETURN_IF_ERROR(CheckOne(codec, "by_epoch", level));
    }
    return absl::OkStatus();
  }
  if (!(spec.target_error > 0 && spec.target_error < 1)) {
    return absl::InvalidArgumentError(absl::StrCat("level.target_error is ", spec.target_error,
                                                   ", want more than 0 and less than 1"));
  }
  RETURN_IF_ERROR(CheckOne(codec, "min", spec.min));
  RETURN_IF_ERROR(CheckOne(codec, "max", spec.max));
  if (spec.min <= spec.max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("level.min is ", spec.min, ", want at most level.max, which is ", spec.max));
}

CodecSpec AtLevel(CodecSpec codec, double level) {
  switch (FieldOf(codec)) {
    case LevelField::kNone:
      break;
    case LevelField::kRatio:
      codec.ratio = level;
      break;
    case LevelField::kBits:
      codec.bits = static_cast<uint32_t>(level);
      break;
    case LevelField::kRate:
      codec.rate = level;
      break;
  }
  return codec;
}

double LevelOf(const CodecSpec& codec) {
  switch (FieldOf(codec)) {
    case LevelField::kNone:
      break;
    case LevelField::kRatio:
      return codec.ratio;
    case LevelField::kBits:
      return codec.bits;
    case LevelField::kRate:
      return codec.rate;
  }
  return 0;
}

CodecSpec InEpoch(const CodecSpec& codec, const LevelSpec& spec, uint32_t epoch) {
  if (spec.kind == LevelKind::kByError) {
    return AtLevel(codec, std::clamp(LevelOf(codec), spec.min, spec.max));
  }
  const auto next = spec.by_epoch.upper_bound(epoch);
  return next == spec.by_epoch.begin() ? codec : AtLevel(codec, std::prev(next)->second);
}

CodecSpec Target(const CodecSpec& codec, const LevelSpec& spec) {
  return InEpoch(codec, spec, UINT32_MAX);
}

CodecSpec Largest(const CodecSpec& codec, const LevelSpec& spec) {
  if (spec.kind == LevelKind::kFixed) return codec;
  double level = std::max(LevelOf(codec), spec.max);
  for (const auto& [epoch, of_epoch] : spec.by_epoch) level = std::max(level, of_epoch);
  return AtLevel(codec, level);
}

CodecSpec Lowest(const CodecSpec& codec, const LevelSpec& spec) {
  if (spec.kind == LevelKind::kFixed) return codec;
  if (spec.kind == LevelKind::kByError) return AtLevel(codec, spec.min);
  double level = LevelOf(InEpoch(codec, spec, /*epoch=*/1));
  for (const auto& [epoch, of_epoch] : spec.by_epoch) level = std::min(level, of_epoch);
  return AtLevel(codec, level);
}

absl::Status CheckMet(const CodecSpec& met, const CodecSpec& codec, const LevelSpec& spec,
                      uint32_t epoch, bool training) {
  if (spec.kind == LevelKind::kByError) {
    const double level = LevelOf(met);
    if (met.kind == codec.kind && level >= spec.min && level <= spec.max &&
        met == AtLevel(codec, level)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat("codec ", met.ToString(), ", want ",
                                                   codec.ToString(), " with a level from ",
                                                   spec.min, " to ", spec.max));
  }
  const CodecSpec want = training ? InEpoch(codec, spec, epoch) : Target(codec, spec);
  if (met == want) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("codec ", met.ToString(), ", want ", want.ToString()));
}

LevelController::LevelController(const CodecSpec& codec, const LevelSpec& spec)
    : codec_(codec),
      spec_(spec),
      current_(InEpoch(codec, spec, /*epoch=*/1)),
      target_(Target(codec, spec)) {}

const CodecSpec& LevelController::Train(uint32_t epoch, uint64_t step) {
  if (spec_.kind == LevelKind::kByEpoch) current_ = InEpoch(codec_, spec_, epoch);
  if (step != step_) Conclude();
  return current_;
}

const CodecSpec& LevelController::Evaluate() {
  if (spec_.kind != LevelKind::kByError) return target_;
  Conclude();
  return current_;
}

void LevelController::Observe(uint64_t step, double relative_error) {
  if (spec_.kind != LevelKind::kByError) return;
  if (step != step_) Conclude();
  step_ = step;
  error_sum_ += relative_error;
  ++measured_;
}

absl::Status LevelController::Restore(const State& state) {
  RETURN_IF_ERROR(CheckOne(codec_, "level", state.level));
  if (state.level < spec_.min || state.level > spec_.max) {
    return absl::InvalidArgumentError(
        absl::StrCat("level ", state.level, ", want ", spec_.min, " to ", spec_.max));
  }
  if (!std::isfinite(state.error_sum) || state.error_sum < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("level: a sum of errors of ", state.error_sum, ", want a finite one from 0"));
  }
  current_ = AtLevel(codec_, state.level);
  step_ = state.step;
  error_sum_ = state.error_sum;
  measured_ = state.measured;
  return absl::OkStatus();
}

void LevelController::Conclude() {
  if (measured_ == 0) return;
  const double error = error_sum_ / measured_;
  const bool bits = FieldOf(codec_) == LevelField::kBits;
  double level = LevelOf(current_);
  if (error > spec_.target_error) {
    level = bits ? level + 1 : level * kRatioNotch;
  } else if (error < kContent * spec_.target_error) {
    level = bits ? level - 1 : level / kRatioNotch;
  }
  current_ = AtLevel(codec_, std::clamp(level, spec_.min, spec_.max));
  error_sum_ = 0;
  measured_ = 0;
}

}  // namespace thinwire
