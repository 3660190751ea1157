#include "coordinator/probe/gradient.h"

#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/safetensors.h"
#include "base/status.h"

namespace thinwire {
namespace {

// Copies the gradient of one parameter to its range.
absl::Status Copy(const StoredTensor& tensor, const ModelLayout& layout, Gradient* gradient) {
  const auto found = layout.ranges.find(tensor.name);
  if (found == layout.ranges.end() || tensor.dtype != "F32") {
    return absl::InternalError(absl::StrCat("a gradient of ", tensor.name, " as ", tensor.dtype,
                                            ", want trained parameters, F32"));
  }
  const ModelLayout::Range& range = found->second;
  if (tensor.data.size() != range.elements * sizeof(float)) {
    return absl::InternalError(absl::StrCat("a gradient of ", tensor.name, " with ",
                                            tensor.data.size() / sizeof(float), " elements, want ",
                                            range.elements));
  }
  std::memcpy((*gradient)[range.segment].data() + range.first, tensor.data.data(),
              tensor.data.size());
  return absl::OkStatus();
}

}  // namespace

uint64_t MostGradientBytes(const ModelLayout& layout) {
  constexpr uint64_t kFileBytes = 1024, kTensorBytes = 256;
  uint64_t bytes = kFileBytes;
  for (const auto& [name, range] : layout.ranges) {
    // Twice, as names may be escaped.
    bytes += range.elements * sizeof(float) + kTensorBytes + 2 * name.size();
  }
  return bytes;
}

absl::StatusOr<Gradient> GradientFrom(const std::vector<GradientFile>& files,
                                      const ModelLayout& layout) {
  Gradient gradient;
  for (const size_t elements : layout.trained_elements) gradient.emplace_back(elements);
  std::set<std::string> seen;
  for (const GradientFile& file : files) {
    const absl::StatusOr<Safetensors> parsed = ParseSafetensors(file.bytes);
    if (!parsed.ok()) {
      return absl::InternalError(
          absl::StrCat(file.stage, ": its gradients: ", parsed.status().message()));
    }
    for (const StoredTensor& tensor : parsed->tensors) {
      RETURN_IF_ERROR(Annotated(Copy(tensor, layout, &gradient), file.stage));
      if (!seen.insert(tensor.name).second) {
        return absl::InternalError(
            absl::StrCat(file.stage, ": a second gradient of ", tensor.name, ", want one"));
      }
    }
  }
  if (seen.size() == layout.ranges.size()) return gradient;
  return absl::InternalError(
      absl::StrCat("gradients of ", seen.size(), " parameters, want ", layout.ranges.size()));
}

}  // namespace thinwire
