// The makespan of one step of a schedule: what `thinwire plan` promises and measured step times
// are judged by. A discrete-event simulation; pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "schedule/schedule.h"

namespace thinwire {

// One chunk of a stage.
struct ChunkCost {
  double forward_seconds = 0;  // one microbatch, on one core group
  double backward_seconds = 0;
  double update_seconds = 0;  // optimizer, once per step, after the stage's last backward
  // Of backward_seconds, those for the weights: kBackwardWeight takes them, kBackwardInput the
  // rest. At most backward_seconds.
  double weight_seconds = 0;
  double attention_share = 0;  // of a microbatch's seconds, for its slices (schedule/slicing.h)
  // Of forward_seconds, those that each slice takes again, however short; of backward_seconds,
  // twice as many.
  double pass_seconds = 0;
};

// One boundary and direction, of one microbatch: its message's, or its slices' together, of which
// each has the part that it has of the positions.
struct TransferCost {
  double encode_seconds = 0;
  double decode_seconds = 0;
  double wire_bytes = 0;
};

// Whose the interfaces of a stage's host are.
enum class Nic {
  // All its links': a host sends and receives at the link's rate in all, and what it sends upstream
  // slows what it sends downstream (schedule/network.h).
  kShared,
  kPrivate,  // each link's: the rate is every boundary's and direction's own
};

// "shared", "private"; the inverse gives InvalidArgument with both.
const char* Name(Nic nic);
absl::Status FromName(const std::string& name, Nic* to);
std::vector<Nic> AllNics();

struct LinkRate {
  double bits_per_second = 0;  // in each direction; 0: infinitely fast
  double latency_seconds = 0;  // one way
  Nic nic = Nic::kPrivate;
};

// What a message takes of a processor at each of its ends, besides its codec.
struct TransportCost {
  double seconds_per_message = 0;
  double seconds_per_byte = 0;  // while it crosses the link
};

struct Simulation {
  ScheduleKind schedule = ScheduleKind::kOneForwardOneBackward;
  int microbatches = 1;
  int chunks_per_stage = 1;                          // 1, but where the schedule Interleaves
  std::vector<int64_t> slices;                       // positions of each, where it Slices
  std::vector<ChunkCost> chunks;                     // in model order; number i is at stage
                                                     // i mod stages()
  std::vector<TransferCost> activations, gradients;  // between them: one less
  LinkRate link;
  TransportCost transport;
  // Processor groups that the stages share on one host: at most this many actions, encodes,
  // decodes and ends of messages run at once, the longest-waiting first. 0: every stage has its own
  // machine.
  int cores = 0;

  int stages() const { return static_cast<int>(chunks.size()) / chunks_per_stage; }
};

struct Makespan {
  double seconds = 0;
  std::vector<double> busy_seconds;  // per stage: compute and update, without codec work
  double bubble_ratio = 0;           // 1 - sum(busy) / (stages seconds)
};

// Every stage runs its actions in order, each as soon as its input is decoded, and its update
// last. Encode and decode overlap with compute: each boundary and direction has one worker at
// either end and one connection, which take their messages one after another; latency delays a
// message but does not hold the connection.
Makespan Simulate(const Simulation& simulation);

}  // namespace thinwire
