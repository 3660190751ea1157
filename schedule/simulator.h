// Simulation of the duration of one step of a schedule: what `thinwire plan` predicts and measured
// step times are compared to. A discrete-event simulation without side effects.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
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
};

// Cost of one microbatch at one boundary, in one direction. That is one message, or all its slices
// together, each of which has the share of its positions.
struct TransferCost {
  double encode_seconds = 0;
  double decode_seconds = 0;
  double wire_bytes = 0;
};

// Who shares the interface of a stage's host.
enum class Nic {
  // All links of the host. It sends and receives at the link's rate in all, so what it sends
  // upstream slows what it sends downstream (schedule/network.h).
  kShared,
  kPrivate,  // nobody: every boundary and direction has the full rate
};

// Returns "shared" or "private". FromName is its inverse; InvalidArgument names both.
const char* Name(Nic nic);
absl::Status FromName(const std::string& name, Nic* to);
std::vector<Nic> AllNics();

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

// What to simulate.
struct Simulation {
  ScheduleKind schedule = ScheduleKind::kOneForwardOneBackward;
  int microbatches = 1;
  int chunks_per_stage = 1;       // 1 unless the schedule Interleaves
  std::vector<int64_t> slices;    // positions of each slice; empty unless the schedule Slices
  std::vector<ChunkCost> chunks;  // in model order; chunk i is at stage i mod stages()
  // Between neighbouring chunks; one less than chunks.
  std::vector<TransferCost> activations, gradients;
  LinkRate link;
  TransportCost transport;
  // Core groups that the stages share on one host. At most this many actions, encodes, decodes and
  // ends of messages run at once; those that have waited longest go first. 0: every stage has its
  // own machine.
  int cores = 0;

  int stages() const { return static_cast<int>(chunks.size()) / chunks_per_stage; }
};

// Result of a simulation.
struct Makespan {
  double seconds = 0;
  std::vector<double> busy_seconds;  // of each stage: compute and update, without codec work
  double bubble_ratio = 0;           // 1 - sum(busy) / (stages x seconds)
};

// Simulates a step. Every stage runs its actions in order, each as soon as its input is decoded,
// and its update last. Encoding and decoding overlap with compute: each boundary and direction has
// one worker at either end and one connection, which handle their messages one after another.
// Latency delays a message but does not occupy the connection.
Makespan Simulate(const Simulation& simulation);

}  // namespace thinwire
