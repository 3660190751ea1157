// What is done about the error that a codec leaves: the checked form of an experiment's `feedback`.
// Presets resolve to a kind, a key and an initial value: lazy = ef/stream (Optimus-CC, arXiv
// 2301.09830), aq_sgd = ef21/sample/exact (arXiv 2206.01299).
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace thinwire {

// x: what the sender has; C: the codec; D: its inverse.
enum class FeedbackKind : uint8_t {
  kNone = 0,
  kEf = 1,     // m = x + e; sends C(m); e <- decay (m - D(C(m))). State e at the sender.
  kEf21 = 2,   // c = C(x - A); A <- A + D(c) at both ends; the receiver uses A (arXiv 2106.05203)
  kSplit = 3,  // sends C'(x) and C'(e), each of half the budget; e <- decay (x + e - what was sent)
};

// Which row of state belongs to sample i of a message.
enum class StateKey : uint8_t {
  kStream = 0,  // i: what one microbatch left goes to the next
  kSlot = 1,    // its index in the whole batch
  kSample = 2,  // its id in the data set
  kBatch = 3,   // the batch's index in the epoch and its index there; the batches stay the same
};

// What stands in a row of ef21 before its first message.
enum class StateInit : uint8_t {
  kZero = 0,
  kExact = 1,  // the first message of a row goes exact
};

// How rows are stored: q8 and q4 as uniform codes with one symmetric range per 256 elements.
enum class StateStorage : uint8_t { kF32 = 0, kF16 = 1, kQ8 = 2, kQ4 = 3 };

// When `limit_bytes` are in use and a row is new.
enum class OnFull : uint8_t {
  kError = 0,  // the run fails, naming the limit
  kPlain = 1,  // the row travels without state: as if it were zero, and forgotten at once
};

struct FeedbackSpec {
  FeedbackKind kind = FeedbackKind::kNone;
  StateKey key = StateKey::kSlot;
  StateInit init = StateInit::kZero;
  StateStorage store = StateStorage::kF32;
  double decay = 1;  // kEf, kSplit: in (0, 1]
  OnFull on_full = OnFull::kError;
  uint64_t limit_bytes = 0;   // of one end's rows; 0: none
  uint64_t digest_every = 0;  // kEf21: steps; 0: never
  std::string dir;            // rows lie in a file in this folder of the stage's machine; or memory

  // "ef21(key=sample, init=exact, store=fp32)"
  std::string ToString() const;
};

// Names as experiment files spell them.
const char* Name(FeedbackKind kind);  // "ef21"; kSplit: "ef_mixed_b"
const char* Name(StateKey key);
const char* Name(StateInit init);
const char* Name(StateStorage store);
const char* Name(OnFull on_full);

// The inverse of Name, as in spec.h.
absl::Status FromName(const std::string& name, FeedbackKind* to);
absl::Status FromName(const std::string& name, StateKey* to);
absl::Status FromName(const std::string& name, StateInit* to);
absl::Status FromName(const std::string& name, StateStorage* to);
absl::Status FromName(const std::string& name, OnFull* to);

// InvalidArgument naming parameter, the value met and the values wanted.
absl::Status CheckFeedback(const FeedbackSpec& spec);

}  // namespace thinwire
