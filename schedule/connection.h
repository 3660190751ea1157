// Connection by which the messages of a simulation cross between its machines. Part of the
// simulator; no side effects.
#pragma once

#include <vector>

#include "schedule/network.h"
#include "schedule/simulator.h"
#include "schedule/task_graph.h"

namespace thinwire {

// The capacities of a simulation's network: two for each machine, or with Nic::kPrivate two for
// each connection.
class Interfaces {
 public:
  // `simulation` must outlive the object.
  explicit Interfaces(const Simulation& simulation) : simulation_(simulation) {}

  std::vector<double> Capacities() const;
  // Return the two capacities that messages use: those of one boundary and direction of a carrier,
  // and those of a stage from one carrier to another.
  Route OfCut(int carrier, int boundary, bool gradient) const;
  Route OfStage(int stage, int from, int to) const;

 private:
  bool is_shared() const { return simulation_.link.nic == Nic::kShared; }
  int carriers() const { return simulation_.exchange.carriers(); }
  int boundaries() const { return static_cast<int>(simulation_.chunks.size()) - 1; }
  // Return the route between two machines, and over the connection of a number.
  Route Between(int sender, int receiver) const { return {2 * sender, 2 * receiver + 1}; }
  Route Own(int connection) const { return {2 * connection, 2 * connection + 1}; }

  const Simulation& simulation_;
};

// A connection between two machines. Its messages cross one after another. While one crosses, the
// processors of both ends also work, for each of its bytes.
class Connection {
 public:
  // `simulation` and `graph` must outlive the object.
  Connection(const Simulation& simulation, const Route& route, TaskGraph* graph)
      : simulation_(simulation), route_(route), graph_(graph) {}

  // Adds a message that exists at the end of task `made`. `taken` starts no sooner than when it has
  // arrived.
  void Send(double bytes, int made, int taken);

 private:
  const Simulation& simulation_;
  const Route route_;
  TaskGraph* const graph_;
  int cross_ = -1;
  int ends_[2] = {-1, -1};  // last tasks of both processors during crossings
};

}  // namespace thinwire
