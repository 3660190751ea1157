// What an experiment will need and how long a step should take, computed without running it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/feedback/spec.h"
#include "compress/level.h"
#include "compress/spec.h"
#include "coordinator/plan/speeds.h"
#include "coordinator/plan/state_plan.h"
#include "proto/experiment.pb.h"
#include "schedule/simulator.h"

namespace thinwire {

// The network, and the hosts of the stages.
struct PlanAssumptions {
  // Rates of each host's interface (or link, see Nic) and direction, as its line counts bits:
  // headers of TCP, IP and Ethernet included; from 1 to 1e18, or infinity.
  std::vector<double> bits_per_second = {10e6, 100e6, 1e9, 10e9,
                                         std::numeric_limits<double>::infinity()};
  double rtt_ms = 0;  // round trip: there and back; from 0 to 1e12
  Nic nic = Nic::kShared;
  int cores = 0;  // processor groups that all stages share on one host; 0: a host for each stage
};

// Of the bytes that TCP sends in full packets those that are payload: 1448 of 1514. What a line
// counts besides is 14 bytes of Ethernet, 20 of IPv4 and 32 of TCP.
inline constexpr double kPayloadShare = 1448.0 / 1514.0;

// Neighbouring segments that a stage holds together (models/partition.h, Placement).
struct PlannedChunk {
  std::string first_block, last_block;
  double forward_seconds = 0, backward_seconds = 0;  // the largest microbatch
  // Of backward_seconds, those for weights, which a schedule may put off.
  double weight_seconds = 0;
  double pass_seconds = 0;  // of forward_seconds, whatever the samples; backward twice as many
};

struct PlannedStage {
  std::vector<PlannedChunk> chunks;
  std::string device;           // as asked for: "auto", "cuda:1"
  int64_t parameters = 0;       // trainable elements
  double forward_flops = 0;     // one sample
  double recomputed_flops = 0;  // backward does as many again, with pipeline.recompute
  int64_t memory_bytes = 0;     // parameters, gradients, the optimizer's state, what backward needs
  double forward_seconds = 0, backward_seconds = 0;  // the largest microbatch, through all chunks
  double update_seconds = 0;                         // the optimizer, once a step
};

// One direction of one boundary.
struct PlannedDirection {
  CodecSpec codec;  // with a level schedule the one it ends at
  LevelSpec level;
  FeedbackSpec feedback;
  int64_t exact_messages = 0;  // per step: those outside the epilogue, under epilogue_only
  int64_t raw_bytes = 0;       // per step
  // In the last step, at most, where all other messages are compressed: payload bounds, frame
  // headers, gRPC prefixes. A codec whose payloads always have one size takes exactly this.
  int64_t wire_bytes = 0;
  int64_t likely_wire_bytes = 0;  // the same with payloads as the codec's speed has them
  double encode_seconds = 0, decode_seconds = 0;  // per step
  double break_even_bits_per_second = 0;  // serial, as measured ones are; 0: nothing is saved
};

struct PlannedBoundary {
  std::string name;
  int upstream_stage = 0, downstream_stage = 0;
  bool in_memory = false;  // both sides are in one process
  int64_t elements = 0;    // per sample and direction; of the tied cut per step
  PlannedDirection activations, gradients;
};

struct PlannedStep {
  double bits_per_second = 0;  // as in PlanAssumptions
  double seconds = 0;
  double uncompressed_seconds = 0;  // with codec none everywhere
  double bubble_ratio = 0;
};

struct Plan {
  std::string model;
  int64_t batch_size = 0, microbatches = 1, microbatch_size = 0;  // samples; the largest microbatch
  std::string schedule;                                           // "terapipe:4" with slices
  std::string precision;
  double clip_norm = 0;  // 0: the gradient's norm is not asked for
  bool deterministic = true;
  bool batch_norm = false;
  uint32_t warmup_epochs = 0;  // the longer of the two warm-ups counts
  uint64_t warmup_steps = 0;
  PlanAssumptions assumptions;
  std::string compute_source, codec_source;  // of the speeds
  TransportCost transport;                   // likewise
  double layer_seconds = 0;                  // likewise
  std::vector<PlannedStage> stages;
  std::vector<PlannedBoundary> boundaries;  // the tied cut's is the last
  StatePlan state;                          // what feedback remembers
  std::vector<PlannedStep> steps;           // one per link rate, in their order
  std::vector<std::string> warnings;
};

// InvalidArgument names what is out of its range by the flag that sets it.
absl::Status CheckAssumptions(const PlanAssumptions& assumptions);

// `experiment` is resolved, `speeds` are of its model. Errors of CheckAssumptions too.
absl::StatusOr<Plan> MakePlan(const Experiment& experiment, const PlanAssumptions& assumptions,
                              const Speeds& speeds);

// Bytes that a step sends between processes, likely.
int64_t StepWireBytes(const Plan& plan);
// Of the stage that takes most, with what its feedback remembers.
int64_t LargestMemoryBytes(const Plan& plan);

// Tables and the assumptions behind them.
std::string FormatPlan(const Plan& plan);

}  // namespace thinwire
