#include "coordinator/speeds/sample_tensors.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/safetensors.h"
#include "base/status.h"
#include "base/tensor_file.h"
#include "config/experiment.h"
#include "coordinator/run/run.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

// A narrow ResNet, whose first cut has messages of [512, 8, 8, 32], 4 MiB.
constexpr char kExperiment[] = R"(
name: codecs
model: {name: resnet8, width: 32}
data: {name: digits, batch_size: 512}
pipeline: {cuts: [layer1], stages: 1}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
epochs: 2
device: cpu
evaluation: {every: 0, compressed: false, uncompressed: true}
capture: {steps: [4]}
)";

std::string GroupOf(const std::string& name) {
  const std::vector<std::string> parts = absl::StrSplit(name, '/');
  for (const char* group : {"activation", "gradient"}) {
    if (std::find(parts.begin(), parts.end(), group) != parts.end()) return group;
  }
  return "tensor";
}

absl::StatusOr<SampleTensor> SampleFrom(const std::string& path, const StoredTensor& stored) {
  const std::string at = absl::StrCat(path, ": tensor ", stored.name);
  if (stored.dtype != "F32" && stored.dtype != "BF16") {
    return absl::InvalidArgumentError(absl::StrCat(at, " is ", stored.dtype, ", want F32 or BF16"));
  }
  if (stored.shape.empty() || stored.shape.size() > Shape::kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat(at, " has ", stored.shape.size(), " axes, want 1 to ", Shape::kMaxRank));
  }
  Shape shape;
  for (const int64_t extent : stored.shape) shape.Append(extent);
  SampleTensor sample{stored.name, GroupOf(stored.name), {}};
  const DType dtype = stored.dtype == "F32" ? DType::kF32 : DType::kBF16;
  ASSIGN_OR_RETURN(sample.x, Tensor::Allocate(CpuDevice(), dtype, shape));
  if (sample.x.bytes() > 0) std::memcpy(sample.x.data(), stored.data.data(), sample.x.bytes());
  return sample;
}

// `path` is for messages only.
absl::Status AddTensors(const std::string& path, const Safetensors& file,
                        std::vector<SampleTensor>* all) {
  for (const StoredTensor& stored : file.tensors) {
    ASSIGN_OR_RETURN(SampleTensor sample, SampleFrom(path, stored));
    all->push_back(std::move(sample));
  }
  return absl::OkStatus();
}

// Keeps the stages' captures of the last step that has any.
class CaptureKeeper final : public RunObserver {
 public:
  const std::vector<std::string>& files() const { return files_; }

  absl::Status OnCapture(uint64_t /*step*/, const std::vector<std::string>& files) override {
    files_ = files;
    return absl::OkStatus();
  }

 private:
  std::vector<std::string> files_;  // by stage
};

absl::StatusOr<std::vector<SampleTensor>> TrainAndCapture(const SessionOptions& options,
                                                          Interruption* interruption) {
  ASSIGN_OR_RETURN(const Experiment experiment, ParseExperiment(kExperiment, "codecs.yaml", {}));
  ASSIGN_OR_RETURN(const auto session,
                   Session::Start(experiment.name(), experiment, options, interruption));
  CaptureKeeper captures;
  Summary summary;
  RETURN_IF_ERROR(RunExperiment(experiment, session->fleet(), &captures, &summary));
  std::vector<SampleTensor> all;
  for (const std::string& file : captures.files()) {
    ASSIGN_OR_RETURN(Safetensors contents, ParseSafetensors(file));
    RETURN_IF_ERROR(AddTensors("capture", contents, &all));
  }
  return all;
}

}  // namespace

absl::StatusOr<std::vector<SampleTensor>> ReadSampleTensors(const std::vector<std::string>& paths) {
  std::vector<SampleTensor> all;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const TensorFile file, ReadTensorFile(path));
    RETURN_IF_ERROR(AddTensors(path, file.contents, &all));
  }
  return all;
}

absl::StatusOr<std::vector<SampleTensor>> CaptureSampleTensors(const SessionOptions& options,
                                                               Interruption* interruption) {
  auto tensors = TrainAndCapture(options, interruption);
  if (tensors.ok()) return tensors;
  return absl::Status(
      tensors.status().code(),
      absl::StrCat(tensors.status().message(),
                   "; the run that captures tensors failed, give safetensors files"));
}

}  // namespace thinwire
