// Resources that an experiment will need and the time that a step should take, computed without
// running it.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/feedback/direction_spec.h"
#include "config/replicas_spec.h"
#include "config/tensor_parts.h"
#include "coordinator/plan/message_costs.h"
#include "coordinator/plan/speeds.h"
#include "coordinator/plan/state_plan.h"
#include "models/keeping.h"
#include "proto/experiment.pb.h"
#include "proto/plan.pb.h"
#include "schedule/simulator.h"

namespace thinwire {

// Rate of a disk, of a SATA SSD at its best, unless it is given.
inline constexpr double kAssumedSwapRate = 500e6;  // bytes per second

// Assumptions about the network and the stages' hosts.
struct PlanAssumptions {
  // Link rates to plan for: bits per second of each host's interface (or of each link, see Nic) in
  // each direction. They count all bits on the line, headers of TCP, IP and Ethernet included. From
  // 1 to 1e18, or infinity.
  std::vector<double> bits_per_second = {10e6, 100e6, 1e9, 10e9,
                                         std::numeric_limits<double>::infinity()};
  double rtt_ms = 0;  // round trip, there and back; from 0 to 1e12
  Nic nic = Nic::kShared;
  int cores = 0;  // core groups that all stages share on one host; 0: each stage has its own host
  // Machines of each stage, as GridOf lays them out; 0: one for each part of each replica.
  int carriers = 0;
  // Rate at which a stage writes what it swaps, and reads it again; both share it. From 1 to 1e18.
  double swap_bytes_per_second = kAssumedSwapRate;
};

// Share of payload in the bytes of a full TCP packet: 1448 of 1514. The rest are headers: 14 bytes
// of Ethernet, 20 of IPv4 and 32 of TCP.
inline constexpr double kPayloadShare = 1448.0 / 1514.0;

// What one block keeps of a microbatch until its backward pass, and what it costs to keep less.
struct PlannedBlock {
  std::string name;
  int stage = 0;
  BlockKeeping does;
  int64_t kept_bytes = 0;  // if all is kept
  int64_t bytes = 0;       // as it does
  // Seconds, in each microbatch, of running it again, of its codec, and of moving what it swaps.
  double again_seconds = 0, coding_seconds = 0, moving_seconds = 0;
};

// Neighbouring segments that one stage holds together (models/partition.h, Placement).
struct PlannedChunk {
  std::string first_block, last_block;
  // Seconds of the largest microbatch, without sums over tensor-parallel parts. What is swapped
  // moves meanwhile; backward_seconds has what takes longer than both passes of the stage.
  double forward_seconds = 0, backward_seconds = 0;
  // Part of backward_seconds that computes the gradients of weights, which a schedule may put off.
  double weight_seconds = 0;
  // Fixed part of forward_seconds, whatever the number of samples; a backward pass has twice as
  // much.
  double pass_seconds = 0;
  // Seconds in which what is swapped moves, out and in, and of them those in backward_seconds.
  double moving_seconds = 0, exposed_seconds = 0;
};

struct PlannedStage {
  std::vector<PlannedChunk> chunks;
  std::string device;        // as the experiment names it: "auto", "cuda:1"
  int64_t parameters = 0;    // trainable elements
  double forward_flops = 0;  // of one sample
  // FLOPs that backward computes again in blocks that recompute, for one sample.
  double recomputed_flops = 0;
  // Parameters, gradients, optimizer state, what backward needs and what replicas exchange; of a
  // machine.
  int64_t memory_bytes = 0;
  int64_t fixed_bytes = 0;  // of it parameters, gradients and what is remembered
  int most_in_flight = 0;   // microbatches that a chunk has in flight at once
  // Seconds of the largest microbatch, all chunks together.
  double forward_seconds = 0, backward_seconds = 0, moving_seconds = 0;
  double update_seconds = 0;  // of the optimizer, once a step
};

// One direction of one boundary, with the cost of the last step if all but the exact messages are
// compressed.
struct PlannedDirection : MessageCost {
  // Costs nothing yet.
  explicit PlannedDirection(const DirectionSpec& does = {})
      : codec(Target(does.codec, does.level)), level(does.level), feedback(does.feedback) {}

  CodecSpec codec;  // with a level schedule, at its last level
  LevelSpec level;
  FeedbackSpec feedback;
  int64_t exact_messages = 0;  // per step, with epilogue_only: messages outside the epilogue
  // As in BreakEvenBitsPerSecond, for likely_wire_bytes; 0: nothing is saved.
  double break_even_bits_per_second = 0;
};

struct PlannedBoundary {
  std::string name;
  int upstream_stage = 0, downstream_stage = 0;
  bool in_memory = false;  // True if both sides are in one process.
  int64_t elements = 0;    // per sample and direction; at the tied cut per step
  PlannedDirection activations, gradients;
};

// Exchange of the replicas of all stages.
struct PlannedExchange {
  int replicas = 1;  // 1: nothing
  int carriers = 1;  // machines of each stage that carry replicas: rows
  ReplicaExchange way = ReplicaExchange::kReduce;
  int64_t every = 1;    // steps from one exchange to the next
  double per_step = 1;  // exchanges, of which an epoch's end has one too
  // Parts of an exchange that take turns, and steps that go on while one of them travels.
  int fragments = 1;
  int64_t overlap = 0;
  double outer_seconds = 0;  // of the outer optimizer, at the stage where it takes longest
  // In one exchange, all machines together; with the general codecs.
  PlannedDirection contributions, average;
  std::map<std::string, ExchangedSpec> own;  // of segments that have others, by name

  // Returns the most replicas that one machine carries.
  int carried() const { return (replicas + carriers - 1) / carriers; }
};

// Bytes that a machine probably sends.
struct SentByMachine {
  int64_t at_cuts = 0;      // in a step
  int64_t in_sums = 0;      // over tensor-parallel parts, in a step
  int64_t in_exchange = 0;  // in an exchange
};

struct Plan {
  std::string model;
  int parts = 1;     // tensor-parallel ones of the model
  CarrierGrid grid;  // machines of each stage
  // In samples; batch_size is that of all replicas, microbatch_size that of the largest microbatch.
  int64_t batch_size = 0, microbatch_size = 0;
  int64_t microbatches = 1;  // of each replica
  std::string schedule;      // "terapipe:4" with slices
  std::string precision;
  double clip_norm = 0;  // 0: no clipping, so the gradient's norm is not computed
  bool deterministic = true;
  bool batch_norm = false;
  uint32_t warmup_epochs = 0;  // Warm-up lasts as long as the longer of these two.
  uint64_t warmup_steps = 0;
  PlanAssumptions assumptions;
  std::string compute_source, codec_source;  // from `Speeds`
  TransportCost transport;                   // from `Speeds`
  double layer_seconds = 0;                  // from `Speeds`
  std::vector<PlannedStage> stages;
  std::vector<PlannedBlock> blocks;         // of the model, in order
  std::vector<PlannedBoundary> boundaries;  // of a replica, in model order, the tied cut last
  // Partial sums of the parts, once for each receiver as if each part had a machine; `elements` are
  // those of all sums. Set if there are parts.
  std::optional<PlannedBoundary> sums;
  PlannedExchange exchange;
  std::vector<SentByMachine> sent;  // carrier x stages + stage
  StatePlan state;                  // memory that feedback needs at the cuts, of a carrier
  double compute_seconds = 0;       // of a step whose messages take no time
  std::vector<StepEstimate> steps;  // one per link rate, in the order of the assumptions
  std::vector<std::string> warnings;
};

// Checks the ranges of all values. InvalidArgument names a value that is out of range by the flag
// that sets it.
absl::Status CheckAssumptions(const PlanAssumptions& assumptions);

// Returns the experiment of one replica by itself, with its share of a batch and of the data.
absl::StatusOr<Experiment> ReplicaOf(const Experiment& experiment);

// Plans the resolved `experiment` with `speeds` of its model. Returns the errors of
// CheckAssumptions and of GridOf, too.
absl::StatusOr<Plan> MakePlan(const Experiment& experiment, const PlanAssumptions& assumptions,
                              const Speeds& speeds);

// Return the bytes that a step probably sends between processes, with its share of an exchange: all
// of them, and those of the machine that sends most.
int64_t StepWireBytes(const Plan& plan);
int64_t MachineWireBytes(const Plan& plan);
// Returns the memory of the stage that needs most, with the state of its feedback.
int64_t LargestMemoryBytes(const Plan& plan);

// Returns lines on the assumptions behind the times.
std::string FormatAssumptions(const Plan& plan);
// Returns the plan as tables, with the assumptions behind them.
std::string FormatPlan(const Plan& plan);

}  // namespace thinwire
