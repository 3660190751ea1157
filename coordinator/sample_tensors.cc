#include "coordinator/sample_tensors.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/safetensors.h"
#include "base/status.h"
#include "coordinator/exit_code.h"
#include "coordinator/files/file.h"
#include "coordinator/files/temporary_folder.h"
#include "coordinator/files/tensor_file.h"
#include "coordinator/run_command.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;

// As large as the first cut of a narrow ResNet: [512, 8, 8, 32], 4 MiB.
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

absl::Status AddFile(const std::string& path, std::vector<SampleTensor>* all) {
  ASSIGN_OR_RETURN(const TensorFile file, ReadTensorFile(path));
  for (const StoredTensor& stored : file.contents.tensors) {
    ASSIGN_OR_RETURN(SampleTensor sample, SampleFrom(path, stored));
    all->push_back(std::move(sample));
  }
  return absl::OkStatus();
}

// The safetensors files of a folder, by name.
absl::StatusOr<std::vector<std::string>> FilesIn(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == ".safetensors") files.push_back(at->path().string());
  }
  if (error) return FileError(folder, "cannot list", error.value());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

absl::StatusOr<std::vector<SampleTensor>> ReadSampleTensors(const std::vector<std::string>& paths) {
  std::vector<SampleTensor> all;
  for (const std::string& path : paths) RETURN_IF_ERROR(AddFile(path, &all));
  return all;
}

absl::StatusOr<std::vector<SampleTensor>> CaptureSampleTensors(const std::string& stage_server,
                                                               Interruption* interruption) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TemporaryFolder> folder,
                   TemporaryFolder::Make("thinwire-codecs"));
  RunFlags flags;
  flags.experiment = folder->path() + "/codecs.yaml";
  flags.out = folder->path() + "/run";
  flags.quiet = true;
  flags.stage_server = stage_server;
  RETURN_IF_ERROR(ReplaceFile(flags.experiment, kExperiment));
  if (RunCommand(flags, interruption) != kExitDone) {
    return absl::InternalError("the run that captures tensors failed; give safetensors files");
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesIn(flags.out + "/captures"));
  return ReadSampleTensors(files);
}

}  // namespace thinwire
