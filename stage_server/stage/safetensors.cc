#include "stage_server/stage/safetensors.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/safetensors.h"
#include "base/status.h"

namespace thinwire {
namespace {

using Sink = std::function<absl::Status(std::string_view)>;

// A parameter's tensor under the parameter's name.
using Named = std::pair<const ParameterSpec*, const Tensor*>;

absl::Status Write(const std::vector<Named>& tensors, size_t piece_bytes, const Sink& sink) {
  const auto write = [&](std::string_view bytes) -> absl::Status {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece_bytes, bytes.size()))) {
      RETURN_IF_ERROR(sink(bytes.substr(0, piece_bytes)));
    }
    return absl::OkStatus();
  };
  Safetensors file;
  std::vector<uint64_t> bytes;
  for (const auto& [spec, tensor] : tensors) {
    file.tensors.push_back({spec->name, "F32", {spec->shape.begin(), spec->shape.end()}, {}});
    bytes.push_back(tensor->bytes());
  }
  RETURN_IF_ERROR(write(SafetensorsPrefix(file, bytes)));
  std::string host;
  for (const auto& [spec, tensor] : tensors) {
    host.resize(tensor->bytes());
    RETURN_IF_ERROR(
        ToStatus(tensor->device()->CopyToHost(host.data(), tensor->data(), tensor->bytes())));
    RETURN_IF_ERROR(write(host));
  }
  return absl::OkStatus();
}

absl::Status CheckTensor(const StoredTensor& tensor, const ParameterSpec& spec) {
  const std::vector<int64_t> shape(spec.shape.begin(), spec.shape.end());
  if (tensor.dtype == "F32" && tensor.shape == shape) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("parameter ", spec.name, ": ", tensor.dtype, " [",
                                                 absl::StrJoin(tensor.shape, ", "), "], want F32 ",
                                                 spec.shape.ToString()));
}

}  // namespace

absl::Status WriteParameters(const std::vector<const Parameter*>& parameters, size_t piece_bytes,
                             const Sink& sink) {
  std::vector<Named> tensors;
  for (const Parameter* one : parameters) {
    if (one->spec.tied_to.empty()) tensors.emplace_back(&one->spec, &one->value);
  }
  return Write(tensors, piece_bytes, sink);
}

absl::Status WriteGradients(const std::vector<const Parameter*>& parameters, size_t piece_bytes,
                            const Sink& sink) {
  std::vector<Named> tensors;
  for (const Parameter* one : parameters) {
    const bool stands = one->spec.trainable && one->spec.tied_to.empty();
    if (stands) tensors.emplace_back(&one->spec, &one->gradient);
  }
  return Write(tensors, piece_bytes, sink);
}

absl::Status ReadParameters(std::string_view file,
                            const std::vector<const Parameter*>& parameters) {
  ASSIGN_OR_RETURN(const Safetensors parsed, ParseSafetensors(file));
  std::map<std::string_view, const StoredTensor*> tensors;
  std::set<std::string> left_over;
  for (const StoredTensor& tensor : parsed.tensors) {
    tensors[tensor.name] = &tensor;
    left_over.insert(tensor.name);
  }
  std::vector<const StoredTensor*> sources;
  for (const Parameter* parameter : parameters) {
    const ParameterSpec& spec = parameter->spec;
    const std::string& name = spec.tied_to.empty() ? spec.name : spec.tied_to;
    const auto found = tensors.find(name);
    if (found == tensors.end()) {
      return absl::InvalidArgumentError(absl::StrCat("parameter ", name, " is missing"));
    }
    RETURN_IF_ERROR(CheckTensor(*found->second, spec));
    sources.push_back(found->second);
    left_over.erase(name);
  }
  if (!left_over.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", *left_over.begin(), " is no parameter of this stage"));
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& value = parameters[i]->value;
    RETURN_IF_ERROR(ToStatus(
        value.device()->CopyFromHost(value.data(), sources[i]->data.data(), value.bytes())));
  }
  return absl::OkStatus();
}

}  // namespace thinwire
