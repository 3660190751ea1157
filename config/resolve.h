// Completion of an experiment: from what a user wrote to a message in which every field has its
// value.
#pragma once

#include "absl/status/status.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Values of fields that are absent, in every experiment, as YAML. Defaults that belong to one
// codec, feedback, learning rate schedule, optimizer, model or layer are defined with those
// (config/choices.h). Values that follow from other fields are filled in by Resolve.
inline constexpr char kExperimentDefaults[] = R"(
name: experiment
seed: 1
model: {}
data: {batch_size: 100, augment: per_epoch, limit: 0, test_limit: 0, held_out: 0, verify: true,
       shuffle: samples}
pipeline: {microbatches: 1, schedule: 1f1b, threads: auto, transport: unix, deadline_seconds: 60,
           recompute: none, received: payload, swap: device}
compression:
  warmup_epochs: 0
  warmup_steps: 0
optimizer: {}
lr_schedule: {warmup_steps: 0}
precision: fp32
deterministic: true
evaluation: {every: 1, compressed: true, recalibrated: false, every_steps: 0}
metrics: {error_every: 20}
checkpoint: {every_steps: 0, every_epochs: 1, keep: 2, codec_state: full}
restarts: {max: 3, window: 3600}
)";

// Fills in kExperimentDefaults where fields are absent.
absl::Status FillDefaults(Experiment* experiment);

// Fills in every absent field that means something in this experiment (not `bits` of topk). Turns
// `cuts: auto` into names, an uncut model into {"none"} and `augment: true` into per_epoch.
// Completes each entry of compression.boundaries with the general fields, and checks every value.
// InvalidArgument names the field's path, the value met and those wanted; *experiment is then half
// resolved. A resolved experiment resolves to itself, so a stage server can check a coordinator's
// with this. `seeds` stays as given: absent ones follow from `seed` (config/specs.h).
absl::Status Resolve(Experiment* experiment);

}  // namespace thinwire
