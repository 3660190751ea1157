#include "coordinator/plan/captured_outliers.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/tensor_file.h"
#include "compress/checks/outliers.h"
#include "compress/codec_table.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "config/yaml_tree.h"
#include "coordinator/files/record.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

constexpr char kActivation[] = "/activation/";

absl::StatusOr<Tensor> TensorFrom(const StoredTensor& stored) {
  const bool is_wide = stored.dtype == "F32";
  const bool has_axes = !stored.shape.empty() && stored.shape.size() <= Shape::kMaxRank;
  if ((!is_wide && stored.dtype != "BF16") || !has_axes) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", stored.name, ": ", stored.dtype, " with ", stored.shape.size(),
                     " axes, want F32 or BF16 with 1 to ", Shape::kMaxRank));
  }
  Shape shape;
  for (const int64_t extent : stored.shape) shape.Append(extent);
  ASSIGN_OR_RETURN(Tensor x,
                   Tensor::Allocate(CpuDevice(), is_wide ? DType::kF32 : DType::kBF16, shape));
  if (x.bytes() > 0) std::memcpy(x.data(), stored.data.data(), x.bytes());
  return x;
}

// Returns the paths of a run's captures, in the order of their names.
std::vector<std::string> CapturesIn(const std::string& dir) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(dir + "/captures", error)) {
    if (entry.path().extension() == ".safetensors") paths.push_back(entry.path());
  }
  absl::c_sort(paths);
  return paths;
}

// Returns a line for each cut of `found` at which the activations' codec gets the outliers.
absl::StatusOr<std::vector<std::string>> ToldOf(const std::map<std::string, std::string>& found,
                                                const std::string& where,
                                                const Experiment& experiment) {
  std::vector<std::string> lines;
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  for (const Cut& cut : partition.cuts) {
    const auto outliers = found.find(cut.name);
    if (outliers == found.end()) continue;
    ASSIGN_OR_RETURN(const CodecSpec codec,
                     CodecFrom(DirectionOf(experiment, cut.name, /*gradient=*/false)));
    if (codec.is_exact() || codec.divides()) continue;
    const bool can_divide = CodecRowOf(codec.kind).has(CodecRow::kOutliers);
    lines.push_back(absl::StrCat(cut.name, ", activations captured ", where, ": ", outliers->second,
                                 can_divide ? "" : "; of codecs uniform and ecsq can do so"));
  }
  return lines;
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> OutliersOf(const Safetensors& capture) {
  std::map<std::string, std::string> found;
  for (const StoredTensor& stored : capture.tensors) {
    const size_t end = stored.name.find(kActivation);
    if (end == std::string::npos || found.count(stored.name.substr(0, end)) > 0) continue;
    ASSIGN_OR_RETURN(const Tensor x, TensorFrom(stored));
    ASSIGN_OR_RETURN(const FoundOutliers outliers, FindOutliers(x));
    found[stored.name.substr(0, end)] = outliers.ToString();
  }
  for (auto at = found.begin(); at != found.end();) {
    at = at->second.empty() ? found.erase(at) : std::next(at);
  }
  return found;
}

absl::StatusOr<std::vector<std::string>> OutlierWarnings(const std::string& dir,
                                                         const Experiment& experiment) {
  std::map<std::string, std::string> found;
  for (const std::string& path : CapturesIn(dir)) {
    ASSIGN_OR_RETURN(const TensorFile file, ReadTensorFile(path));
    ASSIGN_OR_RETURN(const auto of_file, OutliersOf(file.contents));
    found.insert(of_file.begin(), of_file.end());
  }
  ASSIGN_OR_RETURN(std::vector<std::string> lines, ToldOf(found, "in " + dir, experiment));
  for (std::string& line : lines) line = "warning: " + line;
  return lines;
}

absl::StatusOr<std::vector<std::string>> OutliersOfStep(uint64_t step,
                                                        const std::vector<std::string>& files,
                                                        const Experiment& experiment) {
  std::map<std::string, std::string> found;
  for (const std::string& file : files) {
    if (file.empty()) continue;
    ASSIGN_OR_RETURN(const Safetensors capture, ParseSafetensors(file));
    ASSIGN_OR_RETURN(const auto of_file, OutliersOf(capture));
    found.insert(of_file.begin(), of_file.end());
  }
  return ToldOf(found, absl::StrCat("at step ", step), experiment);
}

absl::StatusOr<std::vector<std::string>> OutlierWarningsOfRun(const std::string& dir) {
  RETURN_IF_ERROR(CheckRecorded(dir));
  const std::string path = dir + "/experiment.yaml";
  ASSIGN_OR_RETURN(const std::string text, ReadYamlFile(path));
  ASSIGN_OR_RETURN(const Experiment experiment, ParseResolved(text, path));
  return OutlierWarnings(dir, experiment);
}

}  // namespace thinwire
