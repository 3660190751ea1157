// Reports of one step by the carriers of an experiment's replicas, put together.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "proto/coordinator.pb.h"
#include "proto/stage.pb.h"

namespace thinwire {

// Not thread-safe. Of one carrier everything is handed on as it came.
class CarrierReports {
 public:
  explicit CarrierReports(int carriers) : carriers_(static_cast<size_t>(carriers)) {}

  // Takes what a carrier's last stage reports of a step. Returns the report of the whole step once
  // all have come: its loss is the sum over replicas, in ascending order, over all labels.
  std::optional<StepReport> Add(int carrier, const StepReport& step);

  // Takes what senders of a carrier tell of single steps. Returns the sums of those of which all
  // carriers have told.
  std::vector<TrafficRecord> Add(const std::vector<TrafficRecord>& traffic);
  // Returns the sums of which only some have told, as they can at the end of an epoch: some
  // carriers may have no samples of its last batch.
  std::vector<TrafficRecord> Rest();

  // Forgets what has come so far.
  void Clear();

 private:
  struct Sum {
    TrafficRecord traffic;
    size_t carriers = 0;
  };
  using Place = std::tuple<uint64_t, std::string, std::string>;  // step, boundary, direction

  const size_t carriers_;
  std::map<uint64_t, std::map<int, StepReport>> steps_;  // by step, by carrier
  std::map<Place, Sum> traffic_;
};

}  // namespace thinwire
