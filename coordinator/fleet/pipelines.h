// The servers of a run by stage and carrier, and their order.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "config/tensor_parts.h"

namespace thinwire {

// Servers are numbered carrier by carrier, and stage by stage within each. A stage on fewer
// machines than others has none of the last carriers.
struct Pipelines {
  int stages = 1;
  CarrierGrid grid = {};  // of every stage, or of that on most machines
  // Numbers of carriers of all stages, if they are not the same; then grid.deal is empty.
  std::vector<int> stage_carriers = {};

  struct Place {
    int stage = 0, carrier = 0;
  };

  int carriers() const { return grid.count(); }
  int CarriersOf(int stage) const {
    return stage_carriers.empty() ? carriers() : stage_carriers[static_cast<size_t>(stage)];
  }
  // Returns the number of carriers of the stage on fewest machines.
  int LeastCarriers() const {
    return stage_carriers.empty() ? carriers()
                                  : *std::min_element(stage_carriers.begin(), stage_carriers.end());
  }
  // Returns the grid of the machines of a stage.
  CarrierGrid GridOf(int stage) const {
    return stage_carriers.empty() ? grid : CarrierGrid{CarriersOf(stage), 1, {}};
  }
  int servers() const {
    return stage_carriers.empty()
               ? stages * carriers()
               : std::accumulate(stage_carriers.begin(), stage_carriers.end(), 0);
  }
  Place PlaceOf(int server) const {
    if (stage_carriers.empty()) return {server % stages, server / stages};
    Place place;
    for (int i = -1;; Advance(&place)) {
      if (place.carrier < CarriersOf(place.stage) && ++i == server) return place;
    }
  }
  int ServerAt(int stage, int carrier) const {
    if (stage_carriers.empty()) return carrier * stages + stage;
    int server = 0;
    for (Place place; place.stage != stage || place.carrier != carrier; Advance(&place)) {
      if (place.carrier < CarriersOf(place.stage)) ++server;
    }
    return server;
  }

 private:
  void Advance(Place* place) const {
    if (++place->stage < stages) return;
    place->stage = 0;
    ++place->carrier;
  }
};

}  // namespace thinwire
