// What an experiment will need and how long a step should take, computed without running it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compress/feedback/spec.h"
#include "compress/level.h"
#include "compress/spec.h"
#include "coordinator/plan/state_plan.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// What a plan cannot know. Every stage has a machine of its own. Speeds are from 1e-6 to 1e12.
struct PlanAssumptions {
  double gflops = 100;  // what a stage computes, 10^9 operations per second
  // Raw bytes that a codec encodes, and again decodes; codec none takes no time.
  double codec_gigabytes_per_second = 1;
  double latency_ms = 0;  // what every link takes one way; from 0 to 1e12
};

struct PlannedStage {
  std::string first_block, last_block;
  std::string device;           // as asked for: "auto", "cuda:1"
  int64_t parameters = 0;       // trainable elements
  double forward_flops = 0;     // one sample; backward is taken as twice that
  double recomputed_flops = 0;  // and as this besides, with pipeline.recompute
  int64_t memory_bytes = 0;     // parameters, gradients, the optimizer's state, what backward needs
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
  double bits_per_second = 0;  // of every link and direction; 0: infinitely fast
  double seconds = 0;
  double uncompressed_seconds = 0;  // with codec none everywhere
  double bubble_ratio = 0;
};

struct Plan {
  std::string model;
  int64_t batch_size = 0, microbatches = 1, microbatch_size = 0;  // samples; the largest microbatch
  std::string schedule;
  std::string precision;
  double clip_norm = 0;  // 0: the gradient's norm is not asked for
  bool deterministic = true;
  bool batch_norm = false;
  uint32_t warmup_epochs = 0;  // the longer of the two warm-ups counts
  uint64_t warmup_steps = 0;
  PlanAssumptions assumptions;
  std::vector<PlannedStage> stages;
  std::vector<PlannedBoundary> boundaries;  // the tied cut's is the last
  StatePlan state;                          // what feedback remembers
  std::vector<PlannedStep> steps;           // one per link rate, slowest first
  std::vector<std::string> warnings;
};

// `experiment` is resolved. InvalidArgument names an assumption that is out of its range.
absl::StatusOr<Plan> MakePlan(const Experiment& experiment, const PlanAssumptions& assumptions);

// Tables and the assumptions behind them.
std::string FormatPlan(const Plan& plan);

}  // namespace thinwire
