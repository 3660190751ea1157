// How the replicas of a pipeline average: the checked form of an experiment's `replicas`. Which
// machine carries which of them is not the experiment's.
#pragma once

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

struct ReplicasSpec {
  int count = 1;  // number of replicas that share a batch; 1: nothing is exchanged
  ReplicaExchange exchange = ReplicaExchange::kReduce;
  DirectionSpec contributions;  // what becomes of a replica's gradient on its way
  DirectionSpec average;        // kReduce: likewise of the sum
};

// Replicas [first, end).
struct ReplicaRange {
  int first = 0, end = 1;

  int size() const { return end - first; }
  bool has(int replica) const { return first <= replica && replica < end; }
};

// Returns the replicas of carrier `carrier`, one of `carriers` pipelines that carry `replicas` in
// nearly equal numbers, in order.
inline ReplicaRange CarriedBy(int carrier, int carriers, int replicas) {
  return {carrier * replicas / carriers, (carrier + 1) * replicas / carriers};
}

// Returns the carrier of that replica.
inline int CarrierOf(int replica, int carriers, int replicas) {
  int carrier = 0;
  while (!CarriedBy(carrier, carriers, replicas).has(replica)) ++carrier;
  return carrier;
}

}  // namespace thinwire
