// Reports of one step by the servers of a run, put together.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "coordinator/run/boundary_totals.h"
#include "proto/coordinator.pb.h"
#include "proto/stage.pb.h"

namespace thinwire {

// Not thread-safe. Of one carrier all is handed on as it came, except for what replicas exchange.
class CarrierReports {
 public:
  explicit CarrierReports(const Pipelines& pipelines) : pipelines_(pipelines) {}

  // Takes what a carrier's last stage reports of a step. Returns the report of the whole step once
  // all have come: its loss is the sum over replicas, in ascending order, over all labels.
  std::optional<StepReport> Add(int carrier, const StepReport& step);

  // Takes what a server tells of single steps. Returns the sums of those of which all have told:
  // one server of each carrier about a cut, every server about what replicas exchange.
  std::vector<TrafficRecord> Add(int server, const std::vector<TrafficRecord>& traffic);
  // Returns the sums of which only some have told, as they can at the end of an epoch: some
  // carriers may have no samples of its last batch, and some stages nothing to exchange.
  std::vector<TrafficRecord> Rest();

  // Forgets what has come so far.
  void Clear();

 private:
  using Place = std::tuple<uint64_t, std::string, std::string>;  // step, boundary, direction

  const Pipelines pipelines_;
  std::map<uint64_t, std::map<int, StepReport>> steps_;    // by step, by carrier
  std::map<Place, std::map<int, TrafficRecord>> traffic_;  // by server
};

}  // namespace thinwire
