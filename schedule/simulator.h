// Simulation of the duration of one step of a schedule: what `thinwire plan` predicts and measured
// step times are compared to. A discrete-event simulation without side effects.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/enum_names.h"
#include "schedule/schedule.h"

namespace thinwire {

// Seconds of one chunk of a stage.
struct ChunkCost {
  double forward_seconds = 0;  // of one microbatch, on one core group
  double backward_seconds = 0;
  double update_seconds = 0;  // of the optimizer, once per step, after the stage's last backward
  // Part of backward_seconds for the gradients of weights. kBackwardWeight takes these seconds and
  // kBackwardInput the rest. At most backward_seconds.
  double weight_seconds = 0;
  // Share of attention in a microbatch's seconds, for its slices (schedule/slicing.h).
  double attention_share = 0;
  // Part of forward_seconds that each slice takes in full, however short; twice that of
  // backward_seconds.
  double pass_seconds = 0;
  // Seconds for which a pass waits for other machines besides, without a core.
  double forward_wait_seconds = 0, backward_wait_seconds = 0;
};

// Cost of one microbatch at one boundary, in one direction. That is one message, or all its slices
// together, each of which has the share of its positions.
struct TransferCost {
  double encode_seconds = 0;
  double decode_seconds = 0;
  double wire_bytes = 0;
};

// Sharers of the interface of a stage's host.
enum class Nic {
  // All links of the host. It sends and receives at the link's rate in all, so what it sends
  // upstream slows what it sends downstream (schedule/network.h).
  kShared,
  kPrivate,  // nobody: every boundary and direction has the full rate
};

// Returns the names "shared" and "private" (base/enum_names.h).
NameTable<Nic> TableOf(Nic);

// Properties of a link.
struct LinkRate {
  double bits_per_second = 0;  // in each direction; 0: infinitely fast
  double latency_seconds = 0;  // one way
  Nic nic = Nic::kPrivate;
};

// Processor time that a message takes at each of its ends, besides its codec.
struct TransportCost {
  double seconds_per_message = 0;
  double seconds_per_byte = 0;  // while it crosses the link
};

// Cost of one piece of what replicas exchange (models/pieces.h).
struct PieceCost {
  int owner = 0;                            // replica that adds up the contributions
  std::vector<TransferCost> contributions;  // of each replica
  TransferCost sum;                         // on its way back to all
  bool gathers = false;                     // True: contributions go to all, and nobody sends sums.
  // False: who encodes a contribution knows at once what it decodes to.
  bool decodes_own = true;
  // Second round of a piece whose two factors are summed one after the other, else empty: a
  // contribution of each replica, which follows from the first sum, and the second sum, of which
  // both then are used.
  std::vector<TransferCost> second_contributions = {};
  TransferCost second_sum = {};

  bool has_second() const { return !second_contributions.empty(); }
};

// Replicas of the pipeline, and what those of one stage exchange in a step. Each carrier is a
// pipeline of machines, which carries some replicas, one after another.
struct Exchange {
  std::vector<int> carrier_of = {0};  // of each replica, ascending; every carrier has replicas
  // Pieces of each stage, in the order in which they are sent; empty: nothing is exchanged.
  std::vector<std::vector<PieceCost>> pieces;

  int replicas() const { return static_cast<int>(carrier_of.size()); }
  int carriers() const { return carrier_of.back() + 1; }
  // Returns the replicas of a carrier, ascending.
  std::vector<int> CarriedBy(int carrier) const;
};

// Returns the bytes that the machine of `carrier` at `stage` sends in an exchange.
double SentBytes(const Exchange& exchange, int stage, int carrier);

// Returns by how much an exchange lengthens its step, which takes `with` seconds with all of it and
// `without` seconds without. It has `fragments` in turn, each of which `overlap` steps may hide.
double ExposedSeconds(double with, double without, int fragments, int64_t overlap);

// Schedule, costs and links to simulate.
struct Simulation {
  ScheduleKind schedule = ScheduleKind::kOneForwardOneBackward;
  int microbatches = 1;           // of a replica
  int chunks_per_stage = 1;       // 1 unless the schedule Interleaves
  std::vector<int64_t> slices;    // positions of each slice; empty unless the schedule Slices
  std::vector<ChunkCost> chunks;  // in model order; chunk i is at stage i mod stages()
  // Between neighbouring chunks; one less than chunks.
  std::vector<TransferCost> activations, gradients;
  LinkRate link;
  TransportCost transport;
  Exchange exchange;
  // Core groups that the stages share on one host. Actions, encodes, decodes and ends of messages
  // take one for each of `machines`; those that have waited longest go first. 0: every machine is
  // a host of its own.
  int cores = 0;
  // Machines of a stage that do the same at the same time, as those of tensor-parallel parts do.
  int machines = 1;

  int stages() const { return static_cast<int>(chunks.size()) / chunks_per_stage; }
};

// Time from the last pass of a stage, at the carrier that is there first, to when all its machines
// have what they need to update.
struct ExchangeSpan {
  double begin_seconds = 0, end_seconds = 0;
};

// Result of a simulation.
struct Makespan {
  double seconds = 0;
  // Compute and update of each machine, without codec work: carrier x stages + stage.
  std::vector<double> busy_seconds;
  double bubble_ratio = 0;              // 1 - sum(busy) / (machines x seconds)
  std::vector<ExchangeSpan> exchanges;  // of each stage
};

// Simulates a step. Every stage runs its actions in order, each as soon as its input is decoded,
// then exchanges with the same stage of the other carriers, and updates last. Encoding and decoding
// overlap with compute: each boundary and direction has one worker at either end and one
// connection, which handle their messages one after another. Latency delays a message but does not
// occupy the connection.
Makespan Simulate(const Simulation& simulation);

}  // namespace thinwire
