#include "tests/wire/configurations.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "config/experiment.h"

namespace thinwire {
namespace {

// The output of block `a` has many zeros, that of `b` none. The last batch is short.
constexpr char kExperiment[] = R"(
model:
  name: custom
  blocks:
    - name: a
      layers: [{kind: conv, name: conv, out: 4, kernel: 3, padding: 1, stride: 2}, {kind: relu}]
    - name: b
      layers: [{kind: conv, name: conv, out: 6, kernel: 3, padding: 1, stride: 2}]
    - name: head
      layers: [{kind: relu}, {kind: flatten}, {kind: linear, name: fc, out: 10}]
data: {name: digits, batch_size: 6, limit: 15, test_limit: 7, shuffle: batches}
pipeline: {cuts: [a], stages: 1, microbatches: 2, threads: 1}
metrics: {error_every: 1}
optimizer: {name: sgd, lr: 0.05}
epochs: 2
)";

// Training sends two messages of two chunks each; the two evaluations each send one of one sample.
constexpr char kTwoChunks[] = R"(
model:
  name: custom
  blocks:
    - {name: a, layers: [{kind: conv, name: conv, out: 128, kernel: 1}]}
    - {name: head, layers: [{kind: global_avg_pool}, {kind: linear, name: fc, out: 10}]}
data: {name: digits, batch_size: 130, limit: 130, test_limit: 1}
pipeline: {cuts: [a], stages: 1, threads: 1}
optimizer: {name: sgd, lr: 0.05}
epochs: 1
)";

// Sequences of five positions: of four patches and the class before them.
constexpr char kSequences[] = R"(
model: {name: vit, layers: 1, heads: 2, width: 8, patch: 4}
data: {name: digits, batch_size: 6, limit: 15, test_limit: 7}
pipeline: {cuts: [embedding], stages: 1, microbatches: 2, threads: 1}
metrics: {error_every: 1}
optimizer: {name: sgd, lr: 0.05}
epochs: 1
)";

struct Codecs {
  const char* name;
  const char* activations;
  const char* gradients;
};

constexpr Codecs kCodecs[] = {
    {"none", "codec: none", "codec: none, lossless: zstd"},
    {"halves", "codec: bf16", "codec: fp16"},
    {"fp8", "codec: fp8", "codec: fp8, format: e5m2"},
    {"blockwise8", "codec: blockwise8, block: 64", "codec: blockwise8, block: 100, lossless: zstd"},
    {"uniform_min_max", "codec: uniform, bits: 4", "codec: uniform, bits: 1"},
    {"uniform_on_grid", "codec: uniform, bits: 3, zero: on_grid, scope: channel",
     "codec: uniform, bits: 5, zero: on_grid, scope: sample"},
    {"uniform_max_abs", "codec: uniform, bits: 8, range: max_abs, scope: sample",
     "codec: uniform, bits: 2, range: max_abs, scope: token"},
    {"uniform_fixed_point", "codec: uniform, bits: 1, range: fixed_point",
     "codec: uniform, bits: 6, range: fixed_point, scope: channel"},
    {"uniform_groups", "codec: uniform, bits: 7, scope: group, group: 10",
     "codec: uniform, bits: 3, range: fixed_point, scope: group, group: 33, rounding: stochastic"},
    {"uniform_stochastic", "codec: uniform, bits: 2, rounding: stochastic",
     "codec: uniform, bits: 4, range: max_abs, scope: token, rounding: stochastic"},
    {"uniform_rotated", "codec: uniform, bits: 4, rotation: hadamard, rotation_block: 64",
     "codec: uniform, bits: 3, rotation: hadamard, rotation_block: 8, rounding: stochastic, "
     "range: max_abs, scope: sample"},
    {"topk", "codec: topk, ratio: 0.2", "codec: topk, ratio: 0.05, values: bf16, scope: tensor"},
    {"topk_counts", "codec: topk, k: 3, scope: channel, pad: exact_k, values: fp16",
     "codec: topk, ratio: 0.3, count: paper1, scope: token"},
    {"topk_dense", "codec: topk, ratio: 1", "codec: topk, ratio: 0.9, lossless: zstd"},
    {"topk_uniform", "codec: topk, ratio: 0.4, values: uniform, bits: 4, zero: on_grid",
     "codec: topk, ratio: 0.3, values: uniform, bits: 3, range: max_abs, group: 7, "
     "rounding: stochastic"},
    {"topk_groups", "codec: topk, ratio: 0.1, scope: group, group: 50",
     "codec: topk, k: 4, scope: group, group: 33, values: means"},
    {"topk_means", "codec: topk, ratio: 0.2, values: means, bits: 4, group: 9",
     "codec: topk, ratio: 0.3, values: means, bits: 1, scope: group, group: 20, pad: exact_k"},
    {"means", "codec: threshold, threshold: 0.3, values: means, bits: 3",
     "codec: randomk, ratio: 0.4, values: means"},
    {"threshold", "codec: threshold, threshold: 0.3",
     "codec: threshold, threshold: 1.5, relative_to: rms, values: fp16"},
    {"threshold_of_max", "codec: threshold, threshold: 0.5, relative_to: max, values: bf16",
     "codec: threshold, threshold: 1, relative_to: rms, values: uniform, bits: 5"},
    {"randomk", "codec: randomk, ratio: 0.3", "codec: randomk, k: 2, scope: token, values: fp16"},
    {"randomk_unbiased", "codec: randomk, ratio: 0.6, unbiased: true, scope: tensor, values: bf16",
     "codec: randomk, ratio: 0.4, unbiased: true, scope: channel, count: paper1, values: uniform, "
     "bits: 4, rounding: stochastic"},
    {"low_rank", "codec: low_rank, rank: 2", "codec: low_rank, rank: 1, per_sample: true"},
    {"shared_indices", "codec: topk, ratio: 0.2", "codec: topk, indices: shared"},
    {"shared_indices_fp16", "codec: topk, ratio: 0.2, feedback: ef",
     "codec: topk, indices: shared, values: fp16"},
    {"shared_indices_bf16", "codec: topk, ratio: 0.3",
     "codec: topk, indices: shared, values: bf16, lossless: zstd"},
    {"shared_indices_uniform", "codec: topk, ratio: 0.5",
     "codec: topk, indices: shared, values: uniform, bits: 4, group: 5"},
    {"support_casts", "codec: none", "codec: none, support: received_nonzero"},
    {"support_fp16", "codec: fp16", "codec: fp16, support: received_nonzero"},
    {"support_fp8", "codec: bf16", "codec: fp8, support: received_nonzero"},
    {"support_blockwise8", "codec: none",
     "codec: blockwise8, block: 32, support: received_nonzero"},
    {"support_uniform", "codec: uniform, bits: 4, zero: on_grid",
     "codec: uniform, bits: 5, scope: group, group: 20, support: received_nonzero"},
    {"support_rotated", "codec: topk, ratio: 0.3, feedback: ef21",
     "codec: uniform, bits: 5, rotation: hadamard, rotation_block: 16, rounding: stochastic, "
     "support: received_nonzero"},
    {"support_topk", "codec: none", "codec: topk, ratio: 0.2, support: received_nonzero"},
    {"support_threshold", "codec: none",
     "codec: threshold, threshold: 1, relative_to: rms, support: received_nonzero"},
    {"support_randomk", "codec: none",
     "codec: randomk, ratio: 0.4, unbiased: true, support: received_nonzero"},
    {"entropy", "codec: uniform, bits: 8, lossless: entropy",
     "codec: topk, ratio: 0.3, values: uniform, bits: 4, lossless: entropy"},
    {"entropy_nibbles", "codec: uniform, bits: 4, zero: on_grid, scope: channel, lossless: entropy",
     "codec: fp8, lossless: entropy"},
    {"ecsq", "codec: ecsq", "codec: ecsq, step: 2, rounding: stochastic"},
    {"ecsq_scopes", "codec: ecsq, step: 0.5, rounding: dead_zone, scope: sample",
     "codec: ecsq, step: 0.02, rounding: dither, scope: token, lossless: none"},
    {"ecsq_supported", "codec: ecsq, reconstruction: center, scope: group, group: 33",
     "codec: ecsq, rounding: dither, support: received_nonzero"},
    {"ecsq_nonzero", "codec: ecsq, rounding: nearest_nonzero, step: 2",
     "codec: ecsq, rounding: nearest_nonzero, step: 0.5, support: received_nonzero"},
    {"ecsq_principal", "codec: ecsq, rotation: principal, rotation_every: 2, scope: token",
     "codec: ecsq, step: 2, rounding: dither, rotation: principal, rotation_every: 3"},
    {"ecsq_principal_tracked",
     "codec: ecsq, rotation: principal, rotation_every: 3, feedback: ef21",
     "codec: ecsq, step: 0.5, rotation: principal, rotation_every: 2, feedback: ef"},
    {"outliers", "codec: uniform, bits: 4, outliers: 1, scope: token",
     "codec: ecsq, rounding: dither, outliers: 2, scope: sample"},
    {"outliers_tracked", "codec: uniform, bits: 3, outliers: 2, feedback: ef21",
     "codec: ecsq, rotation: principal, rotation_every: 2, outliers: 1, feedback: ef"},
    {"ecsq_rated", "codec: ecsq, rate: 5, level: {by_epoch: {2: 4}}",
     "codec: ecsq, rate: {bits: 6}, rounding: dither, scope: sample"},
    {"levels", "codec: topk, ratio: 0.5, level: {by_epoch: {2: 0.1}}",
     "codec: uniform, bits: 4, level: {target_error: 0.05, min: 2, max: 8}"},
    {"epilogue_only", "codec: none", "codec: topk, ratio: 0.2, epilogue_only: true, feedback: ef"},
};

// Codecs that go with every kind and key of error feedback.
constexpr Codecs kCompensated[] = {
    {"", "codec: topk, ratio: 0.2", "codec: uniform, bits: 4"},
    {"_randomk", "codec: randomk, ratio: 0.3, values: fp16",
     "codec: uniform, bits: 3, range: max_abs, rounding: stochastic"},
    {"_low_rank", "codec: low_rank, rank: 2", "codec: blockwise8, block: 64, lossless: zstd"},
};

struct Feedback {
  const char* name;
  const char* yaml;
};

constexpr Feedback kFeedbacks[] = {
    {"ef", "{kind: ef}"},
    {"lazy", "{kind: lazy, decay: 0.9}"},
    {"ef_batch", "{kind: ef, key: batch, store: fp16, decay: 0.5}"},
    {"ef_sample", "{kind: ef, key: sample, store: q4}"},
    {"ef_q8", "{kind: ef, store: q8}"},
    {"ef21", "{kind: ef21, digest_every: 1}"},
    {"ef21_exact", "{kind: ef21, init: exact, key: batch, store: fp16, digest_every: 2}"},
    {"aq_sgd", "{kind: aq_sgd, digest_every: 1}"},
    {"aq_sgd_q8", "{kind: aq_sgd, store: q8, digest_every: 1}"},
    {"ef21_sample", "{kind: ef21, key: sample, store: q4, digest_every: 3}"},
    // A row has 256 bytes, so eight of fifteen find room.
    {"aq_sgd_full", "{kind: aq_sgd, limit_bytes: 2048, on_full: plain, digest_every: 1}"},
    {"ef_full", "{kind: ef, key: sample, limit_bytes: 2048, on_full: plain}"},
};

std::string Override(const char* direction, const std::string& entry) {
  return absl::StrCat("compression.", direction, "={", entry, "}");
}

class Runs {
 public:
  absl::Status Add(const std::string& name, const std::vector<std::string>& overrides,
                   const char* experiment = kExperiment) {
    RecordedRun run;
    run.name = name;
    ASSIGN_OR_RETURN(run.experiment, ParseExperiment(experiment, name, overrides));
    runs_.push_back(std::move(run));
    return absl::OkStatus();
  }
  RecordedRun& last() { return runs_.back(); }
  std::vector<RecordedRun> Take() { return std::move(runs_); }

 private:
  std::vector<RecordedRun> runs_;
};

std::vector<std::string> Both(const std::string& activations, const std::string& gradients) {
  return {Override("activations", activations), Override("gradients", gradients)};
}

absl::Status AddCompensated(Runs* runs) {
  for (const Feedback& feedback : kFeedbacks) {
    for (const Codecs& codecs : kCompensated) {
      const auto with = [&](const char* codec) {
        return absl::StrCat(codec, ", feedback: ", feedback.yaml);
      };
      RETURN_IF_ERROR(runs->Add(absl::StrCat(feedback.name, codecs.name),
                                Both(with(codecs.activations), with(codecs.gradients))));
    }
  }
  RETURN_IF_ERROR(runs->Add("ef_mixed_a", Both("codec: uniform, bits: 4, feedback: ef_mixed_a",
                                               "codec: topk, ratio: 0.1, feedback: ef_mixed_a")));
  RETURN_IF_ERROR(
      runs->Add("ef_mixed_b", Both("codec: topk, ratio: 0.2, feedback: ef_mixed_b",
                                   "codec: randomk, ratio: 0.3, feedback: {kind: ef_mixed_b, "
                                   "decay: 0.9, key: stream}")));
  return runs->Add(
      "ef_mixed_b_uniform",
      Both("codec: topk, k: 5, values: uniform, bits: 4, rounding: stochastic, lossless: zstd, "
           "feedback: ef_mixed_b",
           "codec: randomk, ratio: 0.4, values: uniform, bits: 4, rounding: stochastic, "
           "feedback: {kind: ef_mixed_b, store: q8}"));
}

// Adds runs with warm-up, with NaNs that may pass, and with tensors of bf16, for each kind of
// state.
absl::Status AddWhatGoesExact(Runs* runs) {
  for (const char* kind : {"none", "ef", "ef21", "aq_sgd", "ef_mixed_b"}) {
    std::string codec = absl::StrCat("codec: topk, ratio: 0.2, on_nonfinite: pass");
    if (std::string(kind) != "none") absl::StrAppend(&codec, ", feedback: ", kind);
    std::vector<std::string> overrides = Both(codec, codec);
    overrides.push_back("epochs=3");
    overrides.push_back("compression.warmup_steps=2");
    RETURN_IF_ERROR(runs->Add(absl::StrCat("warmup_", kind), overrides));
    overrides.back() = "compression.warmup_epochs=1";
    RETURN_IF_ERROR(runs->Add(absl::StrCat("nonfinite_", kind), overrides));
    runs->last().nonfinite_step = 5;
    RETURN_IF_ERROR(runs->Add(absl::StrCat("bf16_", kind), overrides));
    runs->last().bf16_cuts = true;
  }
  RETURN_IF_ERROR(runs->Add("nonfinite_halves", Both("codec: bf16", "codec: fp16")));
  runs->last().nonfinite_step = 2;
  for (const Codecs& codecs : kCodecs) {
    const std::string name = codecs.name;
    if (name != "none" && name != "halves" && name != "uniform_min_max" && name != "randomk" &&
        name != "low_rank" && name != "shared_indices" && name != "support_casts") {
      continue;
    }
    RETURN_IF_ERROR(
        runs->Add(absl::StrCat(name, "_in_bf16"), Both(codecs.activations, codecs.gradients)));
    runs->last().bf16_cuts = true;
  }
  return absl::OkStatus();
}

// Adds runs whose messages are long strings to the entropy coder. With 17 images a message has more
// than 2^17 codes, which are coded in parts.
absl::Status AddLong(Runs* runs) {
  const auto add = [&](const char* name, std::vector<std::string> overrides, int images) {
    overrides.push_back(absl::StrCat("data.batch_size=", images));
    overrides.push_back(absl::StrCat("data.limit=", images));
    return runs->Add(name, overrides, kTwoChunks);
  };
  const std::vector<std::string> neighbours =
      Both("codec: ecsq, step: 0.2", "codec: ecsq, step: 0.5, rounding: dither");
  RETURN_IF_ERROR(add("ecsq_neighbours", neighbours, 4));
  RETURN_IF_ERROR(add("ecsq_parts", neighbours, 17));
  return add("plain_parts",
             Both("codec: uniform, bits: 8, lossless: entropy", "codec: fp8, lossless: entropy"),
             17);
}

}  // namespace

absl::StatusOr<std::vector<RecordedRun>> AllRecordedRuns() {
  Runs runs;
  for (const Codecs& codecs : kCodecs) {
    RETURN_IF_ERROR(runs.Add(codecs.name, Both(codecs.activations, codecs.gradients)));
  }
  RETURN_IF_ERROR(AddCompensated(&runs));
  RETURN_IF_ERROR(AddWhatGoesExact(&runs));
  std::vector<std::string> two_cuts =
      Both("codec: uniform, bits: 4, feedback: ef21", "codec: topk, ratio: 0.2, feedback: ef");
  two_cuts.push_back("pipeline.cuts=[a,b]");
  two_cuts.push_back("compression.boundaries.b.gradients.codec=fp8");
  RETURN_IF_ERROR(runs.Add("two_cuts", two_cuts));
  RETURN_IF_ERROR(runs.Add("two_chunks", {}, kTwoChunks));
  const auto first_positions =
      Both("codec: uniform, bits: 3, scope: token, outliers: 1, first_position: exact",
           "codec: ecsq, first_position: exact, rounding: dither, feedback: ef");
  for (const bool in_bf16 : {false, true}) {
    RETURN_IF_ERROR(runs.Add(in_bf16 ? "first_position_in_bf16" : "first_position", first_positions,
                             kSequences));
    runs.last().bf16_cuts = in_bf16;
    RETURN_IF_ERROR(
        runs.Add(in_bf16 ? "documents_in_bf16" : "documents", first_positions, kSequences));
    runs.last().bf16_cuts = in_bf16;
    runs.last().packs_documents = true;
  }
  const auto coded_gradients = Both(
      "codec: ecsq, rotation: principal, rotation_every: 2, outliers: 1, first_position: exact, "
      "feedback: ef21",
      "codec: uniform, bits: 4");
  RETURN_IF_ERROR(runs.Add("documents_of_activations", coded_gradients, kSequences));
  runs.last().packs_documents = true;
  RETURN_IF_ERROR(AddLong(&runs));
  return runs.Take();
}

}  // namespace thinwire
