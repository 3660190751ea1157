#include "compress/feedback/spec.h"

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

constexpr Named<FeedbackKind> kFeedbackKindNames[] = {{FeedbackKind::kNone, "none"},
                                                      {FeedbackKind::kEf, "ef"},
                                                      {FeedbackKind::kEf21, "ef21"},
                                                      {FeedbackKind::kSplit, "ef_mixed_b"}};
constexpr Named<StateKey> kStateKeyNames[] = {{StateKey::kStream, "stream"},
                                              {StateKey::kSlot, "slot"},
                                              {StateKey::kSample, "sample"},
                                              {StateKey::kBatch, "batch"}};
constexpr Named<StateInit> kStateInitNames[] = {{StateInit::kZero, "zero"},
                                                {StateInit::kExact, "exact"}};
constexpr Named<StateStorage> kStateStorageNames[] = {{StateStorage::kF32, "fp32"},
                                                      {StateStorage::kF16, "fp16"},
                                                      {StateStorage::kQ8, "q8"},
                                                      {StateStorage::kQ4, "q4"}};
constexpr Named<OnFull> kOnFullNames[] = {{OnFull::kError, "error"}, {OnFull::kPlain, "plain"}};

FeedbackSpec Ef(StateKey key) {
  FeedbackSpec spec;
  spec.kind = FeedbackKind::kEf;
  spec.key = key;
  return spec;
}

FeedbackSpec Ef21(StateKey key, StateInit init) {
  FeedbackSpec spec;
  spec.kind = FeedbackKind::kEf21;
  spec.key = key;
  spec.init = init;
  spec.digest_every = 10;
  return spec;
}

FeedbackSpec Split() {
  FeedbackSpec spec;
  spec.kind = FeedbackKind::kSplit;
  return spec;
}

}  // namespace

NameTable<FeedbackKind> TableOf(FeedbackKind) { return {"feedback", kFeedbackKindNames}; }
NameTable<StateKey> TableOf(StateKey) { return {"key", kStateKeyNames}; }
NameTable<StateInit> TableOf(StateInit) { return {"init", kStateInitNames}; }
NameTable<StateStorage> TableOf(StateStorage) { return {"store", kStateStorageNames}; }
NameTable<OnFull> TableOf(OnFull) { return {"on_full", kOnFullNames}; }

const std::vector<FeedbackPreset>& FeedbackPresets() {
  static const auto* const presets = new std::vector<FeedbackPreset>{
      {"none", "what a codec leaves out is lost", {}},
      {"ef", "what was left out is added to the next message of the same key", Ef(StateKey::kSlot)},
      {"lazy", "ef whose residual goes to the next microbatch (Optimus-CC)", Ef(StateKey::kStream)},
      {"ef21", "differences from a state that both ends keep",
       Ef21(StateKey::kSlot, StateInit::kZero)},
      {"aq_sgd", "ef21 per sample, the first message of each exact (AQ-SGD)",
       Ef21(StateKey::kSample, StateInit::kExact)},
      {"ef_mixed_a", "ef for gradients, none for activations", Ef(StateKey::kSlot),
       /*gradients_only=*/true},
      {"ef_mixed_b", "half of the budget for the tensor, half for the residual", Split()},
  };
  return *presets;
}

absl::StatusOr<FeedbackPreset> FindFeedbackPreset(const std::string& name) {
  std::vector<std::string> known;
  for (const FeedbackPreset& preset : FeedbackPresets()) {
    if (preset.name == name) return preset;
    known.push_back(preset.name);
  }
  return UnknownName("feedback", name, known);
}

std::string FeedbackSpec::ToString() const {
  if (kind == FeedbackKind::kNone) return Name(kind);
  std::string text = absl::StrCat(Name(kind), "(key=", Name(key));
  if (kind == FeedbackKind::kEf21) absl::StrAppend(&text, ", init=", Name(init));
  absl::StrAppend(&text, ", store=", Name(store));
  if (decay != 1) absl::StrAppend(&text, ", decay=", decay);
  if (limit_bytes > 0) {
    absl::StrAppend(&text, ", limit_bytes=", limit_bytes, ", on_full=", Name(on_full));
  }
  return text + ")";
}

absl::Status CheckFeedback(const FeedbackSpec& spec) {
  if (!(spec.decay > 0 && spec.decay <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("feedback: decay is ", spec.decay, ", want more than 0 and at most 1"));
  }
  if (spec.limit_bytes == 0 && spec.on_full == OnFull::kPlain) {
    return absl::InvalidArgumentError(
        "feedback: on_full is plain without limit_bytes, want a limit");
  }
  if (spec.init == StateInit::kExact && spec.kind != FeedbackKind::kEf21) {
    return absl::InvalidArgumentError(absl::StrCat("feedback: init is exact with kind ",
                                                   Name(spec.kind), ", want it with ef21 only"));
  }
  return absl::OkStatus();
}

}  // namespace thinwire
