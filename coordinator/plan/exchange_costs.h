// Cost of what replicas exchange in a step: bytes on the wire, and the codecs' seconds.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "config/replicas_spec.h"
#include "coordinator/plan/message_costs.h"
#include "coordinator/plan/speeds.h"
#include "proto/experiment.pb.h"
#include "schedule/simulator.h"

namespace thinwire {

// Messages of one kind that cross between machines, and their cost.
struct ExchangedMessages {
  int64_t messages = 0;
  MessageCost cost;  // of all together; encoded and decoded as often as machines do
};

// Exchange of all stages.
struct ExchangeCosts {
  Exchange exchange;  // for the simulator, with bytes as they are likely
  ExchangedMessages contributions, sums;
};

// Returns the cost of the exchange of the resolved `experiment` among as many `carriers`, at most
// as many as there are replicas, each with these tensor-parallel `parts`. `exactly`: with codec
// none. Returns the errors of the codecs.
absl::StatusOr<ExchangeCosts> CostsOfExchange(const Experiment& experiment, int carriers,
                                              const ReplicaRange& parts, const Speeds& speeds,
                                              bool exactly);

}  // namespace thinwire
