#include "tests/wire/recorded_training.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/status.h"
#include "compress/cpu/kernels.h"
#include "config/specs.h"
#include "nn/cpu/ops.h"
#include "nn/loss.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

using nlohmann::json;

constexpr Direction kDirections[] = {DIRECTION_ACTIVATION, DIRECTION_GRADIENT};

// Returns a copy of `x` in another type or in the same.
absl::StatusOr<Tensor> Copied(const Tensor& x, DType dtype, const Backend& backend) {
  ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(backend.device, dtype, x.shape()));
  RETURN_IF_ERROR(ToStatus(backend.kernels->Combine(1, x.view(), 0, x.view(), copy.view())));
  return copy;
}

json ToJson(const FeedbackSpec& spec) {
  return {{"kind", Name(spec.kind)},
          {"key", Name(spec.key)},
          {"init", Name(spec.init)},
          {"store", Name(spec.store)},
          {"decay", spec.decay},
          {"limit_bytes", spec.limit_bytes},
          {"digest_every", spec.digest_every}};
}

json ToJson(const LevelSpec& level) {
  static constexpr const char* kKinds[] = {"fixed", "by_epoch", "by_error"};
  return {{"kind", kKinds[static_cast<int>(level.kind)]}, {"by_epoch", level.by_epoch}};
}

json ToJson(const StageSpec& spec, RecordedCut* cut, Direction direction) {
  const BoundarySpec& boundary = cut->boundary(direction);
  const bool is_gradient = direction == DIRECTION_GRADIENT;
  return {{"name", boundary.name},
          {"cut", boundary.cut},
          {"direction", is_gradient ? "gradient" : "activation"},
          {"codec", boundary.codec.ToString()},
          {"level", ToJson(boundary.level)},
          {"feedback", ToJson(boundary.feedback)},
          {"error_every", boundary.error_every},
          {"epilogue_only", is_gradient && spec.gradients[boundary.cut].epilogue_only},
          {"messages", cut->record(direction).messages}};
}

// Returns the places of documents: one begins in a sample's second position, one in its last but
// for every third sample.
std::vector<uint32_t> SomeStarts(const Shape& shape) {
  std::vector<uint32_t> starts;
  const int64_t positions = shape[1];
  for (int64_t i = 0; i < shape[0]; ++i) {
    starts.push_back(static_cast<uint32_t>(i * positions + 1));
    if (i % 3 > 0) starts.push_back(static_cast<uint32_t>((i + 1) * positions - 1));
  }
  return starts;
}

absl::Status WriteFile(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  file.close();
  if (file) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(path.string(), ": cannot be written"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecordedTraining>> RecordedTraining::New(const RecordedRun& run) {
  std::unique_ptr<RecordedTraining> training(new RecordedTraining(run));
  RETURN_IF_ERROR(training->Build());
  return training;
}

absl::Status RecordedTraining::Build() {
  ASSIGN_OR_RETURN(spec_, StageSpecFrom(run_.experiment, /*stage=*/0));
  Digest run;
  run.Add(run_.name.data(), run_.name.size());
  spec_.run = run.value();
  spec_.generation = 1;
  backend_.device = CpuDevice();
  backend_.kernels = CpuCodecKernels();
  backend_.ops = NewCpuOps(1);
  ASSIGN_OR_RETURN(const DataOptions options, DataOptionsFrom(run_.experiment.data()));
  ASSIGN_OR_RETURN(data_, LoadData(options));
  FeedSpec feed;
  feed.shuffle = {spec_.shuffle, spec_.seeds.data, spec_.batch_size};
  ASSIGN_OR_RETURN(feed.augment, AugmentFrom(run_.experiment));
  feed.inputs = feed.labels = true;
  feed_ = std::make_unique<Feed>(feed, &data_, backend_);
  RETURN_IF_ERROR(BuildSegments());
  if (run_.bf16_cuts) spec_.compute = DType::kBF16;
  spec_.packs_documents = run_.packs_documents;
  for (size_t i = 0; i < spec_.cuts.size(); ++i) {
    ASSIGN_OR_RETURN(auto cut, RecordedCut::New(spec_, static_cast<int>(i), backend_));
    cuts_.push_back(std::move(cut));
  }
  return absl::OkStatus();
}

absl::Status RecordedTraining::BuildSegments() {
  for (int i = 0; i <= static_cast<int>(spec_.cuts.size()); ++i) {
    const BlockRange blocks = SegmentBlocks(spec_.model, spec_.cuts, i);
    SegmentOptions options;
    options.device = backend_.device;
    options.ops = backend_.ops.get();
    options.init_seed = spec_.seeds.init;
    options.dropout_seed = spec_.seeds.dropout;
    options.needs_input_gradient = i > 0;
    ASSIGN_OR_RETURN(auto segment,
                     BuildSegment(absl::MakeConstSpan(spec_.model.blocks)
                                      .subspan(blocks.first, blocks.last - blocks.first),
                                  options));
    ASSIGN_OR_RETURN(auto optimizer, NewOptimizer(spec_.optimizer, segment->parameters(),
                                                  backend_.device, backend_.ops.get()));
    RETURN_IF_ERROR(segment->ClearGradients());
    segments_.push_back(std::move(segment));
    optimizers_.push_back(std::move(optimizer));
  }
  return absl::OkStatus();
}

absl::Status RecordedTraining::Run() {
  for (uint32_t epoch = 1; epoch <= run_.experiment.epochs(); ++epoch) {
    RETURN_IF_ERROR(Train(epoch));
    RETURN_IF_ERROR(Evaluate(PHASE_EVALUATE_COMPRESSED, epoch));
    RETURN_IF_ERROR(Evaluate(PHASE_EVALUATE_UNCOMPRESSED, epoch));
  }
  return absl::OkStatus();
}

absl::Status RecordedTraining::Train(uint32_t epoch) {
  const int64_t samples = data_.train->size();
  const auto rows =
      std::make_shared<const EpochRows>(EpochOf(spec_, epoch, samples), NeedsSampleIds(spec_));
  for (const auto& cut : cuts_) cut->StartEpoch(rows);
  const int64_t steps = NumBatches(samples, spec_.batch_size);
  for (int64_t i = 0; i < steps; ++i) {
    Work work;
    work.epoch = epoch;
    work.step = static_cast<uint64_t>((epoch - 1) * steps + i + 1);
    work.compress = epoch > spec_.warmup_epochs && work.step > spec_.warmup_steps;
    const int64_t first = i * spec_.batch_size;
    RETURN_IF_ERROR(Step(work, {first, std::min(first + spec_.batch_size, samples)}));
  }
  return absl::OkStatus();
}

// Runs all forward passes, then all backward passes, so that several microbatches are under way.
absl::Status RecordedTraining::Step(Work work, const SampleRange& batch) {
  work.batch_size = batch.last - batch.first;
  work.microbatches = static_cast<int>(std::min<int64_t>(spec_.microbatches, work.batch_size));
  work.deadline = spec_.patience->Deadline();
  std::vector<InFlight> in_flight;
  const auto of_microbatch = [&](int m) {
    work.microbatch = m;
    const SampleRange part = MicrobatchRange(work.batch_size, work.microbatches, m);
    work.samples = part.last - part.first;
    work.first_sample = part.first;
    return SampleRange{batch.first + part.first, batch.first + part.last};
  };
  for (int m = 0; m < work.microbatches; ++m) {
    const SampleRange range = of_microbatch(m);
    ASSIGN_OR_RETURN(InFlight one, Forward(work, range));
    in_flight.push_back(std::move(one));
  }
  for (int m = 0; m < work.microbatches; ++m) {
    of_microbatch(m);
    RETURN_IF_ERROR(Backward(work, &in_flight[m]));
  }
  for (size_t i = 0; i < segments_.size(); ++i) {
    RETURN_IF_ERROR(optimizers_[i]->Step(/*lr=*/0.05));
    RETURN_IF_ERROR(segments_[i]->ParametersChanged());
  }
  return absl::OkStatus();
}

absl::Status RecordedTraining::Evaluate(Phase phase, uint32_t epoch) {
  const int64_t samples = data_.test->size();
  Work work;
  work.phase = phase;
  work.epoch = epoch;
  work.compress = phase == PHASE_EVALUATE_COMPRESSED;
  for (int64_t first = 0; first < samples; first += spec_.batch_size) {
    const SampleRange batch{first, std::min(first + spec_.batch_size, samples)};
    ++work.step;
    work.batch_size = work.samples = batch.last - batch.first;
    work.deadline = spec_.patience->Deadline();
    RETURN_IF_ERROR(Forward(work, batch).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<RecordedTraining::InFlight> RecordedTraining::Forward(const Work& work,
                                                                     const SampleRange& range) {
  const bool training = work.phase == PHASE_TRAIN;
  InFlight in_flight;
  in_flight.saved.resize(segments_.size());
  in_flight.ids = IdsOf(work, range);
  ASSIGN_OR_RETURN(const Samples samples, feed_->Take({work.phase, work.epoch, range}));
  const Pass pass(training ? Mode::kTrain : Mode::kEvaluate, work.step, work.first_sample);
  Tensor x = samples.inputs;
  for (size_t i = 0; i < segments_.size(); ++i) {
    ASSIGN_OR_RETURN(x, segments_[i]->Forward(x, pass, training ? &in_flight.saved[i] : nullptr));
    if (i + 1 == segments_.size()) break;
    ASSIGN_OR_RETURN(x, Cross(i, work, DIRECTION_ACTIVATION, in_flight.ids, x));
  }
  if (!training) return in_flight;
  RETURN_IF_ERROR(SoftmaxCrossEntropy(x, x.shape()[x.shape().rank() - 1], samples.labels,
                                      work.batch_size, backend_.ops.get(), &in_flight.dlogits)
                      .status());
  return in_flight;
}

absl::Status RecordedTraining::Backward(const Work& work, InFlight* in_flight) {
  Tensor dy = in_flight->dlogits;
  for (size_t i = segments_.size(); i-- > 0;) {
    ASSIGN_OR_RETURN(dy, segments_[i]->Backward(dy, &in_flight->saved[i]));
    if (i == 0) break;
    ASSIGN_OR_RETURN(dy, Cross(i - 1, work, DIRECTION_GRADIENT, in_flight->ids, dy));
  }
  return absl::OkStatus();
}

// Puts a NaN into the message where the run wants it. Clears it behind the cut, where it would
// spoil the parameters.
absl::StatusOr<Tensor> RecordedTraining::Cross(size_t cut, const Work& work, Direction direction,
                                               const std::vector<int64_t>& ids, const Tensor& x) {
  const bool training = work.phase == PHASE_TRAIN;
  ASSIGN_OR_RETURN(Tensor given, Copied(x, DType::kF32, backend_));
  if (training && work.step == run_.nonfinite_step) {
    given.floats()[1] = std::numeric_limits<float>::quiet_NaN();
  }
  if (run_.bf16_cuts) {
    ASSIGN_OR_RETURN(given, Copied(given, DType::kBF16, backend_));
  }
  MessageSamples samples;
  samples.ids = ids;
  if (run_.packs_documents) samples.document_starts = SomeStarts(x.shape());
  if (training) {
    const int64_t size = data_.train->size();
    const auto steps = static_cast<uint64_t>(NumBatches(size, spec_.batch_size));
    const Shuffle shuffle{spec_.shuffle, spec_.seeds.data, spec_.batch_size};
    samples.batch = EpochOrder(shuffle, work.epoch, size).Batch((work.step - 1) % steps);
  }
  ASSIGN_OR_RETURN(const Tensor used,
                   cuts_[cut]->Cross(work, direction, samples, std::move(given)));
  ASSIGN_OR_RETURN(Tensor finite, Copied(used, DType::kF32, backend_));
  for (float& value : finite.floats()) {
    if (!std::isfinite(value)) value = 0;
  }
  return finite;
}

std::vector<int64_t> RecordedTraining::IdsOf(const Work& work, const SampleRange& range) const {
  std::vector<int64_t> ids;
  const Shuffle shuffle{spec_.shuffle, spec_.seeds.data, spec_.batch_size};
  const EpochOrder order(shuffle, work.epoch, data_.train->size());
  for (int64_t i = range.first; i < range.last; ++i) {
    ids.push_back(work.phase == PHASE_TRAIN ? order[i] : i);
  }
  return ids;
}

absl::Status RecordedTraining::Write(const std::string& folder) {
  const std::filesystem::path to = std::filesystem::path(folder) / run_.name;
  std::error_code error;
  std::filesystem::create_directories(to, error);
  if (error) return absl::UnavailableError(absl::StrCat(to.string(), ": ", error.message()));
  json run = {{"run", run_.name},
              {"generation", spec_.generation},
              {"codec_seed", spec_.seeds.codec},
              {"batch_size", spec_.batch_size},
              {"warmup_epochs", spec_.warmup_epochs},
              {"warmup_steps", spec_.warmup_steps},
              {"nonfinite_step", run_.nonfinite_step},
              {"cuts", spec_.cuts.size()},
              {"directions", json::array()}};
  Safetensors tensors;
  for (const auto& cut : cuts_) {
    tensors.tensors.insert(tensors.tensors.end(), cut->tensors().begin(), cut->tensors().end());
    for (const Direction direction : kDirections) {
      json entry = ToJson(spec_, cut.get(), direction);
      const std::string file = absl::StrCat(entry["name"].get<std::string>(), ".",
                                            entry["direction"].get<std::string>(), ".frames");
      RETURN_IF_ERROR(WriteFile(to / file, cut->record(direction).frames));
      run["directions"].push_back(std::move(entry));
    }
  }
  std::string bytes;
  RETURN_IF_ERROR(WriteSafetensors(tensors, size_t{1} << 20, [&](std::string_view piece) {
    bytes += piece;
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(WriteFile(to / "tensors.safetensors", bytes));
  return WriteFile(to / "run.json", run.dump(1));
}

}  // namespace thinwire
