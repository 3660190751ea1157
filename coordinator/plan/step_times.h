// Seconds of a planned step, by simulation.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "config/specs.h"
#include "coordinator/plan/message_costs.h"
#include "coordinator/plan/plan.h"
#include "coordinator/plan/sum_costs.h"
#include "proto/plan.pb.h"
#include "schedule/schedule.h"
#include "schedule/simulator.h"

namespace thinwire {

// Parts of steps. All that it refers to must outlive it.
struct PlannedStep {
  const Plan& plan;  // complete but for its seconds
  const Partition& partition;
  ScheduleKind schedule;
  const std::vector<int64_t>& slices;  // result of SlicesFrom
  const MessageCosts& messages;
  const SumCosts& sums;
  // Exchanges of replicas, coded and with codec none.
  const Exchange &exchange, &exact_exchange;
  TransportCost transport;
};

class StepTimes {
 public:
  explicit StepTimes(const PlannedStep& step);

  // Returns the seconds of a step whose messages take no time.
  double ComputeSeconds() const { return compute_.seconds; }
  // Returns a step at this rate of links; infinite: infinitely fast.
  absl::StatusOr<StepEstimate> At(double bits_per_second) const;

 private:
  using CodedOf = std::function<Coded(const PlannedDirection&)>;
  // A step with its share of an exchange.
  struct SharedStep {
    double seconds = 0, bubble_ratio = 0;
    // The exchange, and by how much it lengthens its step.
    double exchange_seconds = 0, exposed_seconds = 0;
  };

  int slices() const;
  // Returns the step at this rate, with those codecs at cuts and with that exchange.
  absl::StatusOr<SharedStep> SharedStepAt(double bits_per_second, const CodedOf& coded_of,
                                          const Exchange& exchange) const;
  // Returns the link at this rate.
  LinkRate LinkAt(double bits_per_second) const;
  // Lengthens the passes by the sums of tensor-parallel parts.
  absl::Status AddSums(const LinkRate& link, const CodedOf& coded_of,
                       std::vector<ChunkCost>* chunks) const;
  // Returns by how much sums lengthen a step whose other messages take no time.
  absl::StatusOr<double> SumsSeconds(double bits_per_second) const;
  // Simulates a step with all of the exchange.
  absl::StatusOr<Makespan> StepAt(double bits_per_second, const CodedOf& coded_of,
                                  const Exchange& exchange) const;
  // Returns the cost of a microbatch's message, or of all its slices together.
  absl::StatusOr<TransferCost> Transfer(int cut, bool gradient, const Coded& coded) const;
  // Returns the cost of a message at a cut, a mean of those that go coded and those that do not.
  absl::StatusOr<TransferCost> MeanTransfer(int cut, bool gradient, const CodedOf& coded_of) const;
  // Return the seconds of a step between its last backward pass and its update, without those of
  // the exchange: all, and of them those of both gradients of a tied weight.
  absl::StatusOr<double> SecondsBehindPasses(const LinkRate& link, const CodedOf& coded_of) const;
  absl::StatusOr<double> TiedSeconds(const LinkRate& link, const CodedOf& coded_of) const;
  // Returns the seconds of a message that crosses alone.
  double Alone(int64_t bytes, const LinkRate& link) const;

  const PlannedStep step_;
  const Simulation passes_;  // step whose messages take no time
  const Makespan compute_;   // its result
};

}  // namespace thinwire
