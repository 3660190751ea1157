#include "coordinator/sample_tensors.h"

#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/safetensors.h"
#include "base/status.h"
#include "coordinator/exit_code.h"
#include "coordinator/run_command.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

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
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  std::ostringstream bytes;
  bytes << file.rdbuf();
  const std::string content = std::move(bytes).str();
  const absl::StatusOr<Safetensors> parsed = ParseSafetensors(content);
  if (!parsed.ok()) {
    return absl::Status(parsed.status().code(),
                        absl::StrCat(path, ": ", parsed.status().message()));
  }
  for (const StoredTensor& stored : parsed->tensors) {
    ASSIGN_OR_RETURN(SampleTensor sample, SampleFrom(path, stored));
    all->push_back(std::move(sample));
  }
  return absl::OkStatus();
}

// Removed with everything in it.
class TemporaryFolder {
 public:
  static absl::StatusOr<std::unique_ptr<TemporaryFolder>> New() {
    std::string path = (std::filesystem::temp_directory_path() / "thinwire-codecs-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) {
      return absl::InternalError(absl::StrCat(path, ": no folder: ", strerror(errno)));
    }
    return std::unique_ptr<TemporaryFolder>(new TemporaryFolder(path));
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

}  // namespace

absl::StatusOr<std::vector<SampleTensor>> ReadSampleTensors(const std::vector<std::string>& paths) {
  std::vector<SampleTensor> all;
  for (const std::string& path : paths) RETURN_IF_ERROR(AddFile(path, &all));
  return all;
}

absl::StatusOr<std::vector<SampleTensor>> CaptureSampleTensors(const std::string& stage_server,
                                                               Interruption* interruption) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TemporaryFolder> folder, TemporaryFolder::New());
  RunFlags flags;
  flags.experiment = folder->path() + "/codecs.yaml";
  flags.out = folder->path() + "/run";
  flags.quiet = true;
  flags.stage_server = stage_server;
  std::ofstream(flags.experiment) << kExperiment;
  if (RunCommand(flags, interruption) != kExitDone) {
    return absl::InternalError("the run that captures tensors failed; give safetensors files");
  }
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(flags.out + "/captures")) {
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return ReadSampleTensors(files);
}

}  // namespace thinwire
