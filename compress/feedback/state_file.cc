#include "compress/feedback/state_file.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/safetensors.h"
#include "base/status.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

// Returns the type and shape that the rows of a store have in a file.
StoredTensor RowsOf(const std::string& prefix, const StateStore& state, int64_t rows) {
  const bool is_fp32 = state.options().store == StateStorage::kF32;
  const auto width = is_fp32 ? state.options().elements : static_cast<int64_t>(state.row_bytes());
  return {absl::StrCat(prefix, ".rows"), is_fp32 ? "F32" : "U8", {rows, width}, {}};
}

absl::Status WriteRows(StateStore* state,
                       const std::function<absl::Status(std::string_view)>& sink) {
  const std::vector<uint64_t>& keys = state->keys();
  RETURN_IF_ERROR(sink({reinterpret_cast<const char*>(keys.data()), 8 * keys.size()}));
  std::vector<uint8_t> bytes(state->row_bytes());
  for (size_t row = 0; row < keys.size(); ++row) {
    RETURN_IF_ERROR(state->ReadStored(row, absl::MakeSpan(bytes)));
    RETURN_IF_ERROR(sink({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  }
  return absl::OkStatus();
}

std::string Spelled(const StoredTensor& tensor) {
  return absl::StrCat(tensor.dtype, " [", absl::StrJoin(tensor.shape, ", "), "]");
}

absl::StatusOr<StoredTensor> Find(const Safetensors& file, const std::string& name) {
  for (const StoredTensor& tensor : file.tensors) {
    if (tensor.name == name) return tensor;
  }
  return absl::InvalidArgumentError(absl::StrCat("state: no tensor ", name));
}

absl::Status ReadRows(const std::string& prefix, const Safetensors& file, StateStore* state) {
  ASSIGN_OR_RETURN(const StoredTensor keys, Find(file, prefix + ".keys"));
  ASSIGN_OR_RETURN(const StoredTensor rows, Find(file, prefix + ".rows"));
  if (keys.dtype != "U64" || keys.shape.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("state: ", keys.name, " is ", Spelled(keys), ", want U64 [rows]"));
  }
  const StoredTensor want = RowsOf(prefix, *state, keys.shape[0]);
  const auto found = file.metadata.find("store");
  const std::string store = found == file.metadata.end() ? "" : found->second;
  if (store != Name(state->options().store) || rows.dtype != want.dtype ||
      rows.shape != want.shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        "state: ", rows.name, " is ", Spelled(rows), " of store \"", store, "\", want ",
        Spelled(want), " of store \"", Name(state->options().store), "\""));
  }
  RETURN_IF_ERROR(state->Clear());
  const auto* bytes = reinterpret_cast<const uint8_t*>(rows.data.data());
  for (int64_t row = 0; row < keys.shape[0]; ++row) {
    uint64_t key;
    std::memcpy(&key, keys.data.data() + 8 * row, 8);
    RETURN_IF_ERROR(state->Restore(key, {bytes + row * state->row_bytes(), state->row_bytes()}));
  }
  return absl::OkStatus();
}

absl::Status ReadWarmStart(const StoredTensor& stored, Tensor* warm_start) {
  if (stored.dtype != "F32" || stored.shape.empty() || stored.shape.size() > Shape::kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("state: ", stored.name, " is ", Spelled(stored), ", want a factor of F32"));
  }
  Shape shape;
  for (const int64_t extent : stored.shape) shape.Append(extent);
  ASSIGN_OR_RETURN(*warm_start, Tensor::Allocate(CpuDevice(), DType::kF32, shape));
  std::memcpy(warm_start->data(), stored.data.data(), stored.data.size());
  for (const float value : warm_start->floats()) {
    if (std::isfinite(value)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("state: ", stored.name, " has ", value, ", want finite numbers"));
  }
  return absl::OkStatus();
}

absl::Status ReadAxes(const std::string& prefix, const Safetensors& file, StoredAxes* axes) {
  ASSIGN_OR_RETURN(const StoredTensor bytes, Find(file, prefix + ".axes"));
  ASSIGN_OR_RETURN(const StoredTensor messages, Find(file, prefix + ".axes_messages"));
  if (bytes.dtype != "U8" || messages.dtype != "U64" || messages.data.size() != 8) {
    return absl::InvalidArgumentError(absl::StrCat("state: ", bytes.name, " is ", Spelled(bytes),
                                                   " and ", messages.name, " ", Spelled(messages),
                                                   ", want U8 [bytes] and U64 [1]"));
  }
  axes->bytes = std::string(bytes.data);
  std::memcpy(&axes->messages, messages.data.data(), 8);
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteState(const std::string& prefix, StateStore* state, const Tensor& warm_start,
                        const StoredAxes& axes,
                        const std::function<absl::Status(std::string_view)>& sink) {
  Safetensors file;
  std::vector<uint64_t> bytes;
  if (state != nullptr) {
    const auto rows = static_cast<int64_t>(state->keys().size());
    file.metadata["store"] = Name(state->options().store);
    file.tensors.push_back({absl::StrCat(prefix, ".keys"), "U64", {rows}, {}});
    file.tensors.push_back(RowsOf(prefix, *state, rows));
    bytes = {8ull * rows, rows * state->row_bytes()};
  }
  if (!warm_start.empty()) {
    StoredTensor factor = {absl::StrCat(prefix, ".warm_start"), "F32", {}, {}};
    for (int i = 0; i < warm_start.shape().rank(); ++i) {
      factor.shape.push_back(warm_start.shape()[i]);
    }
    file.tensors.push_back(factor);
    bytes.push_back(warm_start.bytes());
  }
  if (!axes.bytes.empty()) {
    const auto axes_bytes = static_cast<int64_t>(axes.bytes.size());
    file.tensors.push_back({absl::StrCat(prefix, ".axes"), "U8", {axes_bytes}, {}});
    file.tensors.push_back({absl::StrCat(prefix, ".axes_messages"), "U64", {1}, {}});
    bytes.insert(bytes.end(), {axes.bytes.size(), 8});
  }
  RETURN_IF_ERROR(sink(SafetensorsPrefix(file, bytes)));
  if (state != nullptr) RETURN_IF_ERROR(WriteRows(state, sink));
  if (!warm_start.empty()) {
    RETURN_IF_ERROR(sink({static_cast<const char*>(warm_start.data()), warm_start.bytes()}));
  }
  if (axes.bytes.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(sink(axes.bytes));
  return sink({reinterpret_cast<const char*>(&axes.messages), 8});
}

absl::Status ReadState(const std::string& prefix, std::string_view file, StateStore* state,
                       Tensor* warm_start, StoredAxes* axes) {
  ASSIGN_OR_RETURN(const Safetensors parsed, ParseSafetensors(file));
  if (state != nullptr) RETURN_IF_ERROR(ReadRows(prefix, parsed, state));
  *warm_start = Tensor();
  *axes = {};
  for (const StoredTensor& tensor : parsed.tensors) {
    if (tensor.name == prefix + ".warm_start") {
      RETURN_IF_ERROR(ReadWarmStart(tensor, warm_start));
    } else if (tensor.name == prefix + ".axes" || tensor.name == prefix + ".axes_messages") {
      RETURN_IF_ERROR(ReadAxes(prefix, parsed, axes));
    } else if (state == nullptr ||
               (tensor.name != prefix + ".keys" && tensor.name != prefix + ".rows")) {
      return absl::InvalidArgumentError(
          absl::StrCat("state: tensor ", tensor.name, " has no place at this end, want ", prefix));
    }
  }
  return absl::OkStatus();
}

}  // namespace thinwire
