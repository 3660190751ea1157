// Averaging of a pipeline's replicas: the checked form of an experiment's `replicas`. Which machine
// carries which of them is not the experiment's.
#pragma once

#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/enum_names.h"
#include "base/parameters.h"
#include "compress/feedback/direction_spec.h"

namespace thinwire {

// Way in which replicas exchange a piece (models/pieces.h).
enum class ReplicaExchange {
  kReduce,  // all send it to its owner, who adds and sends the sum to all
  kGather,  // all send it to all, and each adds
};

// Returns "reduce" or "gather".
inline const char* Name(ReplicaExchange exchange) {
  return exchange == ReplicaExchange::kReduce ? "reduce" : "gather";
}

// Name of what replicas exchange, where cuts have names.
inline constexpr char kReplicas[] = "replicas";

// Name of what the outer optimizer remembers of a parameter, unless its momentum is 0.
inline constexpr char kOuterMomentum[] = "outer_momentum_buffer";

// Times at which replicas exchange what they learned.
enum class ReplicaSync {
  kStep,   // every step: their gradients, before the update
  kLocal,  // every few steps: how far each has gone by itself (DiLoCo; Douillard et al., 2023)
};

// Returns "step" or "local".
inline const char* Name(ReplicaSync sync) { return sync == ReplicaSync::kStep ? "step" : "local"; }

enum class OuterKind : uint8_t { kNesterov, kSgd };

// The optimizer of the values that replicas share (stage_server/replicas/outer_optimizer.h).
struct OuterSpec {
  OuterKind kind = OuterKind::kNesterov;
  double lr = 0.7;
  double momentum = 0.9;
};

template <typename Spec, typename Visit, ForSpec<Spec, OuterSpec> = 0>
void VisitParameters(Spec& spec, Visit&& visit) {
  visit("lr", spec.lr, Presence::kWritten);
  visit("momentum", spec.momentum, Presence::kWritten);
}

// Returns a spec of that kind with default parameters.
OuterSpec DefaultOuter(OuterKind kind);

// Checks the ranges. InvalidArgument names the parameter, its value and what is wanted.
absl::Status CheckOuter(const OuterSpec& spec);

// Returns the names in experiment files (base/enum_names.h).
NameTable<OuterKind> TableOf(OuterKind);

// What becomes of what replicas exchange of a segment.
struct ExchangedSpec {
  DirectionSpec contributions, average;
};

struct ReplicasSpec {
  int count = 1;  // number of replicas that share a batch; 1: nothing is exchanged
  ReplicaExchange exchange = ReplicaExchange::kReduce;
  DirectionSpec contributions;  // what becomes of a replica's gradient on its way
  DirectionSpec average;        // kReduce: likewise of the sum
  // Both of those segments, by number in model order, that have entries of their own.
  std::map<int, ExchangedSpec> segments;
  ReplicaSync sync = ReplicaSync::kStep;
  int64_t every = 1;    // kLocal: steps between two exchanges
  OuterSpec outer;      // this and what follows: kLocal
  int fragments = 1;    // of the parameters, which are exchanged in turn
  int64_t overlap = 0;  // steps between an exchange and the use of its result
  double mix = 0;       // share of a replica's own values then
  // Digests of the parameters are compared every n-th step, or with kLocal at every exchange; 0:
  // never.
  int64_t digest_every = 100;

  bool trains_locally() const { return sync == ReplicaSync::kLocal; }
  // Return what becomes of a segment's contributions and of their sums.
  const DirectionSpec& ContributionsOf(int segment) const {
    const auto own = segments.find(segment);
    return own == segments.end() ? contributions : own->second.contributions;
  }
  const DirectionSpec& AverageOf(int segment) const {
    const auto own = segments.find(segment);
    return own == segments.end() ? average : own->second.average;
  }
};

// Replicas [first, end).
struct ReplicaRange {
  int first = 0, end = 1;

  int size() const { return end - first; }
  bool has(int replica) const { return first <= replica && replica < end; }
};

// Number of replicas of each carrier; empty: nearly equal ones.
using Deal = std::vector<int>;

// Returns the replicas of carrier `carrier`, one of `carriers` pipelines that carry `replicas` in
// order.
inline ReplicaRange CarriedBy(int carrier, int carriers, int replicas, const Deal& deal = {}) {
  if (deal.empty()) return {carrier * replicas / carriers, (carrier + 1) * replicas / carriers};
  const int first = std::accumulate(deal.begin(), deal.begin() + carrier, 0);
  return {first, first + deal[static_cast<size_t>(carrier)]};
}

// Returns the carrier of that replica.
inline int CarrierOf(int replica, int carriers, int replicas, const Deal& deal = {}) {
  int carrier = 0;
  while (!CarriedBy(carrier, carriers, replicas, deal).has(replica)) ++carrier;
  return carrier;
}

}  // namespace thinwire
