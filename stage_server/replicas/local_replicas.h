// Replicas of a stage that train by themselves between exchanges: parameters, running statistics
// and what the optimizer remembers of each, and the values that all had after the last exchange.
//
// The segments and their optimizers have the state of one replica at a time, whose turn it is, or
// the segments have the shared values. State is copied in and out: devices record addresses, and
// layers keep packed copies of weights.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/feedback/message_tensors.h"
#include "nn/optimizer.h"
#include "nn/segment/segment.h"
#include "stage_server/replicas/exchange_options.h"
#include "stage_server/replicas/outer_optimizer.h"

namespace thinwire {

// Returns what the optimizers remember, one after the other.
std::vector<OptimizerState> StatesOf(const std::vector<Optimizer*>& optimizers);

// Not thread-safe, except for drift().
class LocalReplicas {
 public:
  // Begins with the segments' values for all. The segments, and `inner`, an optimizer for each,
  // outlive it.
  static absl::StatusOr<std::unique_ptr<LocalReplicas>> New(const ExchangeOptions& options,
                                                            std::vector<Segment*> segments,
                                                            std::vector<Optimizer*> inner);

  const ReplicaRange& carried() const { return carried_; }

  // Gives the segments and their optimizers the state of a replica, which trains next. The
  // optimizers count the step that it is going to take as `step`.
  absl::Status Load(int replica, uint64_t step);
  // Gives the segments the shared values, as everybody but training sees them.
  absl::Status LoadShared();
  // Sets the segments' gradients of the fragment's parameters to shared minus the replica's values.
  // With fragment 0 it sets running statistics to the replica's. Called for one replica after the
  // other after LoadShared.
  absl::Status LoadDifference(int fragment, int replica);
  // Updates the shared values of a fragment from the sum of all differences, which the gradients
  // have. With fragment 0 the segments' running statistics become shared ones. Called after
  // LoadShared.
  absl::Status Update(int fragment);
  // Gives each replica mix times its own values plus 1 - mix times the shared ones. Called after
  // LoadShared.
  absl::Status Take(const std::vector<int>& fragments, double mix);
  // Makes the segments' values the shared ones, which all replicas then have.
  absl::Status Share();

  // Returns whether replicas may have other values than the shared ones, which are then part of the
  // run's state.
  bool in_round() const { return in_round_; }
  // Return a replica's parameters and running statistics, and what its optimizer remembers, for
  // checkpoints. They share memory with it. Called after LoadShared.
  std::vector<Parameter> Values(int replica) const;
  std::vector<OptimizerState> Inner(int replica) const;
  std::vector<OptimizerState> Outer() const;
  // Says that values were restored.
  void ValuesRestored() { in_round_ = true; }

  // Returns |own - shared| / |shared| over the parameters of the last exchange, the mean of the
  // replicas here; 0 before it. Any thread.
  double drift() const { return drift_; }

 private:
  static constexpr int kShared = -1;

  // State of one replica while it does not train.
  struct Own {
    std::vector<Tensor> values;         // of owned_; where only one replica is here, shared_
    std::vector<OptimizerState> inner;  // empty where only one replica is here
  };

  LocalReplicas(const ExchangeOptions& options, std::vector<Segment*> segments,
                std::vector<Optimizer*> inner);
  absl::Status AddOwn();
  const Own& OwnOf(int replica) const {
    return own_[static_cast<size_t>(replica - carried_.first)];
  }
  const std::vector<Tensor>& ValuesOf(int replica) const {
    return replica == kShared ? shared_ : OwnOf(replica).values;
  }
  absl::Status Copy(const Tensor& from, const Tensor& to) const;
  // Puts away the state that is in the segments and their optimizers, and loads a replica's, or the
  // shared values.
  absl::Status SwitchTo(int replica);
  absl::Status SwitchValues(int replica);
  absl::Status SwitchInner(int replica);
  // Exchanges a parameter's values with those in `memory`.
  absl::Status Swap(const Tensor& values, const Tensor& memory);
  // Gives every replica the values that the segments have of owned_[i].
  absl::Status ShareOne(size_t i) const;
  absl::Status ParametersChanged() const;
  // Returns the norm of a fragment's gradients or shared values, either in the segments.
  absl::StatusOr<double> Norm(int fragment, bool of_gradients) const;

  const ExchangeOptions options_;
  const ReplicaRange carried_;
  const std::vector<Segment*> segments_;
  const std::vector<Optimizer*> inner_;
  std::vector<const Parameter*> owned_;                 // all that have values of their own
  std::vector<int> fragment_of_;                        // of owned_
  std::vector<Tensor> shared_;                          // of owned_, while a replica trains
  std::vector<Own> own_;                                // of carried_, in order
  ReusedTensor spare_;                                  // for Swap
  std::vector<std::unique_ptr<OuterOptimizer>> outer_;  // by fragment
  int loaded_ = kShared;                                // replica whose state the segments have
  bool in_round_ = false;
  double drift_sum_ = 0;  // of the replicas so far
  std::atomic<double> drift_ = 0;
};

}  // namespace thinwire
