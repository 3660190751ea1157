// Chooses one of several ways to do something by trying each.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "tensor/error.h"

namespace thinwire::cuda {

enum class Take { kFirst, kFastest };

// Takes the first plan that runs, or the fastest, of those offered. A plan that fails is no
// candidate.
template <typename Plan>
class PlanChoice {
 public:
  // Runs a plan and sets the time that it took.
  using Try = std::function<Error(const Plan&, float* milliseconds)>;

  PlanChoice(Take take, Try attempt) : take_(take), attempt_(std::move(attempt)) {}

  // Tries a plan; returns true if no further one is wanted. That is so if it is the first that
  // runs. It is also so if memory was too short to tell, as another process might then choose
  // differently.
  bool Offer(Plan plan) {
    float milliseconds = 0;
    error_ = attempt_(plan, &milliseconds);
    if (!error_.ok()) return take_ == Take::kFirst && IsShortOfMemory();
    if (!chosen_.has_value() || milliseconds < least_milliseconds_) {
      chosen_ = std::move(plan);
      least_milliseconds_ = milliseconds;
    }
    return take_ == Take::kFirst;
  }

  // Returns the choice; nothing if no plan ran.
  std::optional<Plan>& chosen() { return chosen_; }
  // Returns the error of the last plan.
  const Error& error() const { return error_; }
  bool IsShortOfMemory() const {
    return error_.code == static_cast<int32_t>(absl::StatusCode::kResourceExhausted);
  }

 private:
  const Take take_;
  const Try attempt_;
  std::optional<Plan> chosen_;
  float least_milliseconds_ = 0;
  Error error_;
};

}  // namespace thinwire::cuda
