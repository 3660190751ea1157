#include "stage_server/stage/stages_testing.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>

#include "base/safetensors.h"
#include "compress/cpu/kernels.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "nn/coded_parameter.h"
#include "nn/cpu/ops.h"
#include "stage_server/stage/join_testing.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

void AppendTo(std::vector<float>* values, const Tensor& tensor) {
  const size_t before = values->size();
  values->resize(before + tensor.elements());
  const Error error =
      tensor.device()->CopyToHost(values->data() + before, tensor.data(), tensor.bytes());
  EXPECT_TRUE(error.ok()) << error.message;
}

void AppendTo(std::vector<float>* values, const Parameter& parameter) {
  const size_t before = values->size();
  values->resize(before + parameter.spec.shape.elements());
  const absl::Status read =
      ReadRows(parameter, /*first_row=*/0, absl::MakeSpan(*values).subspan(before));
  EXPECT_TRUE(read.ok()) << read;
}

std::vector<double> Losses(const std::vector<StepReport>& steps) {
  std::vector<double> losses;
  for (const StepReport& step : steps) losses.push_back(step.loss());
  return losses;
}

// Returns the sender or receiver of one direction of a cut, at whichever stage it is.
template <typename T>
T& Find(const std::vector<std::unique_ptr<LocalStage>>& stages, T* LocalStage::End::*which,
        const std::string& cut, Direction direction) {
  for (const auto& stage : stages) {
    for (const LocalStage::End& end : stage->ends()) {
      T* const found = end.*which;
      if (found && found->spec().name == cut && found->spec().direction == direction) return *found;
    }
  }
  ADD_FAILURE() << "no such end at " << cut;
  std::abort();
}

}  // namespace

Backend CpuBackend(int /*stage*/) {
  Backend backend;
  backend.device = CpuDevice();
  backend.kernels = CpuCodecKernels();
  backend.ops = NewCpuOps(1);
  return backend;
}

Stages::Stages(const std::string& experiment, const std::vector<std::string>& overrides,
               const BackendOf& backend_of, const std::function<void(StageSpec*)>& change,
               int carriers, const std::function<void(DataSplits*)>& change_data) {
  experiment_ = *ParseExperiment(experiment, "test", overrides);
  data_ = *LoadData(*DataOptionsFrom(experiment_.data()));
  change_data(&data_);
  per_carrier_ = experiment_.pipeline().stages();
  for (int i = 0; i < carriers * static_cast<int>(per_carrier_); ++i) {
    StageSpec spec = *StageSpecFrom(experiment_, i % static_cast<int>(per_carrier_));
    spec.carrier = i / static_cast<int>(per_carrier_);
    spec.grid = *GridOf(experiment_, carriers);
    change(&spec);
    AddStage(spec, backend_of(i));
  }
  JoinAll();
}

void Stages::JoinAll() {
  absl::Status joined;
  for (size_t first = 0; first < stages_.size(); first += per_carrier_) {
    for (size_t i = 0; i < per_carrier_; ++i) {
      joined.Update(Join(stages_[first + i].get(), stages_[first + (i + 1) % per_carrier_].get()));
    }
    if (stages_[0]->spec().has_tied_link()) {
      joined.Update(JoinTied(stages_[first].get(), stages_[first + per_carrier_ - 1].get()));
    }
    for (size_t peer = first + per_carrier_; peer < stages_.size(); ++peer) {
      const size_t i = first + peer % per_carrier_;
      joined.Update(JoinPeers(stages_[i].get(), stages_[peer].get()));
    }
  }
  EXPECT_TRUE(joined.ok()) << joined;
}

std::vector<absl::Status> Stages::AtEveryStage(const std::function<absl::Status(size_t)>& task) {
  std::vector<absl::Status> statuses(stages_.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < stages_.size(); ++i) {
    threads.emplace_back([&, i] { statuses[i] = task(i); });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

TrainRequest Stages::Epoch(uint32_t epoch) const {
  TrainRequest request;
  request.set_epoch(epoch);
  request.set_samples(static_cast<uint64_t>(data_.train->size()));
  return request;
}

std::vector<double> Stages::Train(uint32_t epoch) { return Train(Epoch(epoch)); }

std::vector<double> Stages::TrainSteps(uint32_t epoch, uint64_t first_step, uint64_t last_step) {
  TrainRequest request = Epoch(epoch);
  request.set_first_step(first_step);
  request.set_last_step(last_step);
  return Train(request);
}

std::vector<double> Stages::Train(const TrainRequest& request) {
  std::vector<std::vector<StepReport>> steps(stages_.size());
  const auto statuses = AtEveryStage([&](size_t i) {
    return executors_[i]->Train(request,
                                [&, i](const StepReport& step) { steps[i].push_back(step); });
  });
  for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << status;
  const std::vector<StepReport>& last = steps.back();
  if (!last.empty() && last.front().is_of_all()) return Losses(last);
  std::vector<double> losses;
  for (size_t step = 0; step < steps.back().size(); ++step) {
    double sum = 0;
    uint64_t labels = 0;
    for (size_t i = per_carrier_ - 1; i < stages_.size(); i += per_carrier_) {
      const StageSpec& spec = stages_[i]->spec();
      if (spec.place() > 0) continue;
      if (spec.grid.replicas == 1) return Losses(steps[i]);
      for (const double loss : steps[i][step].replica_losses()) sum += loss;
      labels += steps[i][step].labels();
    }
    losses.push_back(sum / static_cast<double>(labels));
  }
  return losses;
}

EvaluationReport Stages::Evaluate(bool compressed, uint64_t recalibration_samples) {
  EvaluateRequest request;
  request.set_epoch(1);
  request.set_compressed(compressed);
  request.set_samples(data_.test->size());
  request.set_recalibration_samples(recalibration_samples);
  EvaluationReport result;
  const auto statuses = AtEveryStage([&](size_t i) {
    // The first carrier evaluates for all, and those of its replicas' other parts.
    if (stages_[i]->spec().row() > 0) return absl::OkStatus();
    const auto report = executors_[i]->Evaluate(request);
    if (report.ok() && i + 1 == per_carrier_) result = *report;
    return report.status();
  });
  for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << status;
  return result;
}

std::vector<float> Stages::Values() const {
  std::vector<float> first;
  const size_t of_row = static_cast<size_t>(stages_[0]->spec().grid.parts) * per_carrier_;
  for (size_t begin = 0; begin < stages_.size(); begin += of_row) {
    std::map<std::string, const Parameter*> by_name;
    for (size_t i = begin; i < begin + of_row; ++i) {
      for (const Parameter* parameter : stages_[i]->parameters()) {
        const auto [found, is_new] = by_name.emplace(parameter->spec.name, parameter);
        if (is_new) continue;  // otherwise both carriers of a replica's parts have it
        std::vector<float> first_one, other;
        AppendTo(&first_one, *found->second);
        AppendTo(&other, *parameter);
        EXPECT_EQ(first_one, other) << parameter->spec.name;
      }
    }
    std::vector<float> values;
    for (const auto& [name, parameter] : by_name) AppendTo(&values, *parameter);
    if (begin == 0) first = values;
    EXPECT_EQ(values, first) << "of the carrier that begins with server " << begin;
  }
  return first;
}

std::map<std::string, std::string> Stages::TakeCaptures(uint64_t step) {
  std::map<std::string, std::string> tensors;
  for (const auto& stage : stages_) {
    std::string file;
    const absl::Status status = stage->TakeCapture(step, 1000, [&](std::string_view piece) {
      file += piece;
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    const auto parsed = ParseSafetensors(file);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    for (const StoredTensor& tensor : parsed->tensors) tensors[tensor.name] = tensor.data;
  }
  return tensors;
}

std::vector<float> Stages::Gradients(uint64_t batch, bool compressed) {
  GradientsRequest request;
  request.set_epoch(1);
  request.set_batch(batch);
  request.set_samples(data_.train->size());
  request.set_compressed(compressed);
  const auto statuses =
      AtEveryStage([&](size_t i) { return executors_[i]->Gradients(request).status(); });
  for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << status;
  std::vector<float> gradients;
  for (const auto& stage : stages_) {
    for (const Parameter* parameter : stage->parameters()) {
      if (!parameter->spec.is_trained()) continue;
      AppendTo(&gradients, parameter->gradient);
    }
    EXPECT_TRUE(stage->ClearGradients().ok());
  }
  return gradients;
}

void Stages::AddStage(const StageSpec& spec, const Backend& backend) {
  stages_.push_back(*LocalStage::Build(spec, backend));
  FeedSpec feed;
  feed.shuffle = {spec.shuffle, spec.seeds.data, spec.batch_size};
  feed.augment = *AugmentFrom(experiment_);
  feed.compute = spec.compute;
  feed.inputs = ReadsInputs(spec);
  feed.labels = spec.last();
  feeds_.push_back(std::make_unique<Feed>(feed, &data_, backend));
  executors_.push_back(std::make_unique<Executor>(
      stages_.back().get(), ReadsSamples(spec) ? feeds_.back().get() : nullptr,
      *LrScheduleFrom(experiment_)));
}

std::vector<absl::Status> Stages::TryTrain(
    uint32_t epoch, const std::function<void(size_t, const StepReport&)>& on_step) {
  return AtEveryStage([&](size_t i) {
    return executors_[i]->Train(Epoch(epoch),
                                [&, i](const StepReport& report) { on_step(i, report); });
  });
}

BoundarySender& Stages::sender(const std::string& cut, Direction direction) {
  return Find(stages_, &LocalStage::End::sender, cut, direction);
}

BoundaryReceiver& Stages::receiver(const std::string& cut, Direction direction) {
  return Find(stages_, &LocalStage::End::receiver, cut, direction);
}

}  // namespace thinwire
