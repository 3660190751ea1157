#include "compress/feedback/state_file.h"

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace thinwire {
namespace {

// Returns the type and shape that the rows of a store have in a file.
StoredTensor RowsOf(const std::string& prefix, const StateStore& state, int64_t rows) {
  const bool is_fp32 = state.options().spec.store == StateStorage::kF32;
  const auto width =
      is_fp32 ? state.options().sample.elements() : static_cast<int64_t>(state.row_bytes());
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
  if (store != Name(state->options().spec.store) || rows.dtype != want.dtype ||
      rows.shape != want.shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        "state: ", rows.name, " is ", Spelled(rows), " of store \"", store, "\", want ",
        Spelled(want), " of store \"", Name(state->options().spec.store), "\""));
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

absl::Status Read(const std::string& prefix, std::string_view file, StateStore* state,
                  bool has_place_for_rows, std::vector<StoredTensor>* carried) {
  ASSIGN_OR_RETURN(Safetensors parsed, ParseSafetensors(file));
  if (state != nullptr) RETURN_IF_ERROR(ReadRows(prefix, parsed, state));
  carried->clear();
  for (StoredTensor& tensor : parsed.tensors) {
    const bool is_of_rows = tensor.name == prefix + ".keys" || tensor.name == prefix + ".rows";
    if (is_of_rows && has_place_for_rows) continue;
    if (is_of_rows || !absl::StartsWith(tensor.name, prefix + ".")) {
      return absl::InvalidArgumentError(
          absl::StrCat("state: tensor ", tensor.name, " has no place at this end, want ", prefix));
    }
    tensor.name.erase(0, prefix.size() + 1);
    carried->push_back(std::move(tensor));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteState(const std::string& prefix, StateStore* state,
                        absl::Span<const StoredTensor> carried,
                        const std::function<absl::Status(std::string_view)>& sink) {
  Safetensors file;
  std::vector<uint64_t> bytes;
  if (state != nullptr) {
    const auto rows = static_cast<int64_t>(state->keys().size());
    file.metadata["store"] = Name(state->options().spec.store);
    file.tensors.push_back({absl::StrCat(prefix, ".keys"), "U64", {rows}, {}});
    file.tensors.push_back(RowsOf(prefix, *state, rows));
    bytes = {8ull * rows, rows * state->row_bytes()};
  }
  for (const StoredTensor& part : carried) {
    file.tensors.push_back(part);
    file.tensors.back().name = absl::StrCat(prefix, ".", part.name);
    bytes.push_back(part.data.size());
  }
  RETURN_IF_ERROR(sink(SafetensorsPrefix(file, bytes)));
  if (state != nullptr) RETURN_IF_ERROR(WriteRows(state, sink));
  for (const StoredTensor& part : carried) RETURN_IF_ERROR(sink(part.data));
  return absl::OkStatus();
}

absl::Status ReadState(const std::string& prefix, std::string_view file, StateStore* state,
                       std::vector<StoredTensor>* carried) {
  return Read(prefix, file, state, /*has_place_for_rows=*/state != nullptr, carried);
}

absl::Status ReadReceived(const std::string& prefix, std::string_view file, StateStore* state,
                          std::vector<StoredTensor>* carried) {
  return Read(prefix, file, state, /*has_place_for_rows=*/true, carried);
}

}  // namespace thinwire
