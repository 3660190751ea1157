#include "nn/optimizer_spec.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "nn/moment_codes.h"

namespace thinwire {
namespace {

constexpr Named<OptimizerKind> kOptimizerNames[] = {
    {OptimizerKind::kSgd, "sgd"}, {OptimizerKind::kAdamW, "adamw"}, {OptimizerKind::kMuon, "muon"}};
constexpr Named<DecayKind> kDecayNames[] = {{DecayKind::kAll, "all"},
                                            {DecayKind::kMatrices, "matrices"}};
constexpr Named<OptimizerPlace> kPlaceNames[] = {{OptimizerPlace::kDevice, "device"},
                                                 {OptimizerPlace::kHost, "host"}};
constexpr Named<MomentFormat> kMomentNames[] = {{MomentFormat::kFP32, "fp32"},
                                                {MomentFormat::kInt8, "int8"}};

constexpr int64_t kLeastCodedElements = 4096;  // as in bitsandbytes

bool IsRate(double value) { return value >= 0 && value < 1; }

// A condition on a parameter, which it may fail.
struct Wanted {
  const char* parameter;
  double met;
  bool holds;
  const char* wanted;
};

}  // namespace

OptimizerSpec DefaultOptimizer(OptimizerKind kind) {
  OptimizerSpec spec;
  spec.kind = kind;
  if (kind != OptimizerKind::kMuon) return spec;
  spec.momentum = 0.95;
  spec.nesterov = true;
  spec.beta2 = 0.95;
  spec.epsilon = 1e-10;
  return spec;
}

absl::Status CheckOptimizer(const OptimizerSpec& spec) {
  const auto is_length = [](double value) { return value >= 0 && std::isfinite(value); };
  const Wanted all[] = {
      {"weight_decay", spec.weight_decay, is_length(spec.weight_decay),
       "a finite number, at least 0"},
      {"momentum", spec.momentum, IsRate(spec.momentum), "at least 0 and less than 1"},
      {"momentum", spec.momentum, !spec.nesterov || spec.momentum > 0, "more than 0 with nesterov"},
      {"adamw_lr", spec.adamw_lr, spec.adamw_lr > 0 && std::isfinite(spec.adamw_lr),
       "a finite number above 0"},
      {"beta1", spec.beta1, IsRate(spec.beta1), "at least 0 and less than 1"},
      {"beta2", spec.beta2, IsRate(spec.beta2), "at least 0 and less than 1"},
      {"epsilon", spec.epsilon, spec.epsilon > 0 && spec.epsilon <= 1, "more than 0 and at most 1"},
      {"clip_norm", spec.clip_norm, is_length(spec.clip_norm), "a finite number, at least 0"},
  };
  for (const Wanted& one : all) {
    if (one.holds) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(one.parameter, ": ", one.met, ", want ", one.wanted));
  }
  return absl::OkStatus();
}

UpdateRule RuleOf(const OptimizerSpec& spec, const ParameterSpec& parameter) {
  if (parameter.orthonormal) return UpdateRule::kStiefel;
  switch (spec.kind) {
    case OptimizerKind::kSgd:
      return UpdateRule::kSgd;
    case OptimizerKind::kAdamW:
      return UpdateRule::kAdamW;
    case OptimizerKind::kMuon:
      return parameter.hidden ? UpdateRule::kMuon : UpdateRule::kAdamW;
  }
  return UpdateRule::kSgd;
}

std::vector<const char*> BufferNames(const OptimizerSpec& spec, const ParameterSpec& parameter) {
  switch (RuleOf(spec, parameter)) {
    case UpdateRule::kSgd:
      if (spec.momentum == 0) return {};
      return {"momentum_buffer"};
    case UpdateRule::kAdamW:
      return {"exp_avg", "exp_avg_sq"};
    case UpdateRule::kMuon:
    case UpdateRule::kStiefel:
      return {"momentum_buffer"};
  }
  return {};
}

bool HasCodedMoments(const OptimizerSpec& spec, const ParameterSpec& parameter) {
  return spec.moments == MomentFormat::kInt8 && parameter.hidden &&
         RuleOf(spec, parameter) == UpdateRule::kAdamW &&
         parameter.shape.elements() >= kLeastCodedElements;
}

double OptimizerBuffers(const OptimizerSpec& spec, bool hidden, bool on_gpu) {
  ParameterSpec parameter;
  parameter.hidden = hidden;
  parameter.shape = {kMomentBlock * kLeastCodedElements};
  const auto buffers = static_cast<double>(BufferNames(spec, parameter).size());
  const bool is_elsewhere = on_gpu && spec.place == OptimizerPlace::kHost;
  if (is_elsewhere && RuleOf(spec, parameter) == UpdateRule::kAdamW) return 0;
  if (!HasCodedMoments(spec, parameter)) return buffers;
  return buffers * static_cast<double>(MomentWords(parameter.shape.elements())) /
         static_cast<double>(parameter.shape.elements());
}

NameTable<OptimizerKind> TableOf(OptimizerKind) { return {"optimizer", kOptimizerNames}; }
NameTable<DecayKind> TableOf(DecayKind) { return {"decay", kDecayNames}; }
NameTable<OptimizerPlace> TableOf(OptimizerPlace) { return {"place", kPlaceNames}; }
NameTable<MomentFormat> TableOf(MomentFormat) { return {"moments", kMomentNames}; }

}  // namespace thinwire
