// The exchange of one stage among the carriers of its replicas, as tasks: in what order a machine
// encodes, sends and decodes (stage_server/replicas/averager.h). Part of the simulator; no side
// effects.
#pragma once

#include <vector>

#include "schedule/connection.h"
#include "schedule/simulator.h"
#include "schedule/task_graph.h"

namespace thinwire {

// Each method adds what one machine does, item after item, behind its task `last`, and returns the
// last item. All carriers' tasks of one method are added before those of the next.
class StageExchange {
 public:
  // `simulation` and `graph` must outlive the object.
  StageExchange(const Simulation& simulation, int stage, TaskGraph* graph);

  // Encodes the pieces of a replica's gradient, sends each to its owner, or to all, and decodes
  // those that are added up here.
  int Contribute(int replica, int last);
  // Decodes what others contribute to the pieces that a carrier adds up, in ascending order of
  // replicas. Then encodes the sum, sends it to all and decodes it, unless a second one follows.
  int AddUp(int carrier, int last);
  // For pieces with a second round: decodes the first sum where it comes from others, encodes what
  // the carrier's replicas contribute to the second and sends it to the owner.
  int ContributeSecond(int carrier, int last);
  // Adds up second contributions as AddUp the first.
  int AddUpSecond(int carrier, int last);
  // Decodes the sums of all other pieces.
  int TakeSums(int carrier, int last);

 private:
  // Returns whether that carrier adds up the contributions to the piece.
  bool AddsAt(int carrier, const PieceCost& piece) const;
  // Encodes a message of `carrier` once and sends it to each of `receivers`. The carrier itself is
  // told without a message.
  int Encode(const TransferCost& cost, int carrier, const std::vector<int>& receivers, int last,
             std::vector<int>* arrivals);
  // Decodes a message that has come with the task `arrival`.
  int Decode(const TransferCost& cost, bool has_crossed, int arrival, int last);

  const Simulation& simulation_;
  const Exchange& exchange_;
  const std::vector<PieceCost> pieces_;
  TaskGraph* const graph_;
  std::vector<int> carriers_;                         // all numbers
  std::vector<std::vector<Connection>> connections_;  // from one carrier to another
  // Tasks at whose end a message is there, at each carrier: contributions of each piece and
  // replica, and sums of each piece.
  std::vector<std::vector<std::vector<int>>> contributions_;
  std::vector<std::vector<int>> sums_;
  // Likewise of second rounds.
  std::vector<std::vector<std::vector<int>>> second_contributions_;
  std::vector<std::vector<int>> second_sums_;
};

}  // namespace thinwire
