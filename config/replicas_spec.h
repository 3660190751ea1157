// How the replicas of a pipeline average: the checked form of an experiment's `replicas`.
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

}  // namespace thinwire
