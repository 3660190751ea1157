// Specification of error compensation: the checked form of an experiment's `feedback`, and the
// presets by whose names experiments choose it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/enum_names.h"
#include "base/parameters.h"

namespace thinwire {

// Recursion by which errors are compensated. x is what the sender has, C the codec, D its inverse.
enum class FeedbackKind : uint8_t {
  kNone = 0,
  kEf = 1,     // m = x + e; sends C(m); e <- decay (m - D(C(m))). State e at the sender.
  kEf21 = 2,   // c = C(x - A); A <- A + D(c) at both ends; the receiver uses A (arXiv 2106.05203)
  kSplit = 3,  // sends C'(x) and C'(e), each of half the budget; e <- decay (x + e - what was sent)
};

// Identity of the row of state of sample i of a message.
enum class StateKey : uint8_t {
  kStream = 0,  // i: what one microbatch lost goes to the next
  kSlot = 1,    // the sample's index in the whole batch
  kSample = 2,  // the sample's id in the data set
  kBatch = 3,   // batch's index in the epoch and sample's index in it; batches stay the same
};

// Contents of a row of ef21 before its first message.
enum class StateInit : uint8_t {
  kZero = 0,
  kExact = 1,  // the first message of a row is sent exactly
};

// Format of stored rows: q8 and q4 are uniform codes with one symmetric range per 256 elements.
enum class StateStorage : uint8_t { kF32 = 0, kF16 = 1, kQ8 = 2, kQ4 = 3 };

// Treatment of a new row if `limit_bytes` are in use.
enum class OnFull : uint8_t {
  kError = 0,  // the run fails, naming the limit
  kPlain = 1,  // the row has no state: it counts as zero and is forgotten at once
};

// Error compensation of one direction.
struct FeedbackSpec {
  FeedbackKind kind = FeedbackKind::kNone;
  StateKey key = StateKey::kSlot;
  StateInit init = StateInit::kZero;
  StateStorage store = StateStorage::kF32;
  double decay = 1;  // kEf, kSplit: in (0, 1]
  OnFull on_full = OnFull::kError;
  uint64_t limit_bytes = 0;   // of one end's rows; 0: no limit
  uint64_t digest_every = 0;  // kEf21: steps between digests; 0: never
  std::string dir;            // folder on the stage's machine for a file of rows; empty: in memory

  // Returns whether messages of evaluation are sent exactly. State by sample knows nothing of test
  // samples, and what it did for training was to send nearly the exact tensor (AQ-SGD).
  bool evaluates_exactly() const { return kind == FeedbackKind::kEf21 && key == StateKey::kSample; }
  // Returns e.g. "ef21(key=sample, init=exact, store=fp32)".
  std::string ToString() const;
};

// Calls visit(name, field, presence) for each parameter of the kind (base/parameters.h).
template <typename Spec, typename Visit, ForSpec<Spec, FeedbackSpec> = 0>
void VisitParameters(Spec& spec, Visit&& visit) {
  if (spec.kind == FeedbackKind::kNone) return;
  const bool is_ef21 = spec.kind == FeedbackKind::kEf21;
  visit("key", spec.key, Presence::kWritten);
  if (is_ef21) visit("init", spec.init, Presence::kWritten);
  visit("store", spec.store, Presence::kWritten);
  if (!is_ef21) visit("decay", spec.decay, Presence::kWritten);
  visit("on_full", spec.on_full, Presence::kWritten);
  visit("limit_bytes", spec.limit_bytes, Presence::kWritten);
  visit("dir", spec.dir, Presence::kOptional);
  if (is_ef21) visit("digest_every", spec.digest_every, Presence::kWritten);
}

// Named choice of `kind` in experiments.
struct FeedbackPreset {
  const char* name;
  const char* what;
  FeedbackSpec spec;            // the defaults of its parameters
  bool gradients_only = false;  // activations are not compensated
};
// Returns all presets, in the order in which errors and lists name them.
const std::vector<FeedbackPreset>& FeedbackPresets();
// Finds a preset. InvalidArgument for an unknown name.
absl::StatusOr<FeedbackPreset> FindFeedbackPreset(const std::string& name);

// Return the names as experiment files spell them (base/enum_names.h).
NameTable<FeedbackKind> TableOf(FeedbackKind);  // "ef21"; kSplit: "ef_mixed_b"
NameTable<StateKey> TableOf(StateKey);
NameTable<StateInit> TableOf(StateInit);
NameTable<StateStorage> TableOf(StateStorage);
NameTable<OnFull> TableOf(OnFull);

// Checks a specification. InvalidArgument names the parameter, the value met and the values wanted.
absl::Status CheckFeedback(const FeedbackSpec& spec);

}  // namespace thinwire
