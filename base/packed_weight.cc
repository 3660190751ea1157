#include "base/packed_weight.h"

#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

constexpr char kState[] = ".quant_state.bitsandbytes__nf4", kOtherState[] = ".quant_state.";
constexpr char kScales[] = ".absmax", kLevels[] = ".quant_map";
constexpr char kNestedScales[] = ".nested_absmax", kNestedLevels[] = ".nested_quant_map";
constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr uint64_t kMostStateBytes = 1 << 16;

using Tensors = std::map<std::string, ShardedTensor>;

// Reads the tensors of one weight, and checks them.
class Reading {
 public:
  Reading(const std::vector<OpenTensorFile>& files, const Tensors& tensors, std::string name)
      : tensors_(tensors),
        name_(std::move(name)),
        state_(tensors.at(name_ + kState).place),
        file_(files[tensors.at(name_ + kState).file]) {}

  absl::StatusOr<PackedWeight> Read() const {
    PackedWeight weight;
    weight.name = name_;
    RETURN_IF_ERROR(ReadState(&weight));
    RETURN_IF_ERROR(FindTensors(&weight));
    return weight;
  }

 private:
  absl::Status FindTensors(PackedWeight* weight) const {
    const int64_t elements = weight->elements();
    if (weight->block < 2 || weight->block % 2 != 0 || elements % weight->block != 0) {
      return Wrong(absl::StrCat("has blocks of ", weight->block, " of its ", elements,
                                " codes, want whole blocks"));
    }
    RETURN_IF_ERROR(Find("", "U8", elements / 2, &weight->codes));
    RETURN_IF_ERROR(Find(kLevels, "F32", 16, &weight->levels));
    const int64_t scales = elements / weight->block;
    if (weight->nested_block == 0) return Find(kScales, "F32", scales, &weight->scales);
    RETURN_IF_ERROR(Find(kScales, "U8", scales, &weight->scales));
    RETURN_IF_ERROR(Find(kNestedLevels, "F32", 256, &weight->nested_levels));
    const int64_t nested = (scales + weight->nested_block - 1) / weight->nested_block;
    return Find(kNestedScales, "F32", nested, &weight->nested_scales);
  }

  absl::Status Wrong(const std::string& what) const {
    return absl::DataLossError(absl::StrCat(file_.path(), ": ", name_, " ", what));
  }

  absl::Status Find(const char* suffix, const char* dtype, int64_t elements,
                    ShardedTensor* tensor) const {
    const auto found = tensors_.find(name_ + suffix);
    if (found == tensors_.end()) return Wrong(absl::StrCat("has no ", name_, suffix));
    *tensor = found->second;
    const TensorPlace& place = tensor->place;
    const int64_t is =
        std::accumulate(place.shape.begin(), place.shape.end(), int64_t{1}, std::multiplies<>());
    if (place.dtype == dtype && is == elements) return absl::OkStatus();
    return Wrong(absl::StrCat("has ", place.name, " of ", place.dtype, " [",
                              absl::StrJoin(place.shape, ", "), "], want ", dtype, " with ",
                              elements, " elements"));
  }

  absl::Status ReadState(PackedWeight* weight) const {
    if (state_.bytes > kMostStateBytes) return Wrong("has a state of more than 64 KiB");
    std::string text;
    RETURN_IF_ERROR(file_.Read(state_, kPieceBytes, [&text](std::string_view piece) {
      text += piece;
      return absl::OkStatus();
    }));
    const auto state = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    const auto is_count = [&state](const char* key) {
      return state.is_object() && state.contains(key) && state[key].is_number_unsigned() &&
             state[key].get<uint64_t>() < (uint64_t{1} << 31);
    };
    const bool has_shape = state.is_object() && state.contains("shape") &&
                           state["shape"].is_array() && !state["shape"].empty();
    if (!has_shape || !is_count("blocksize"))
      return Wrong("has no shape and blocksize in its state");
    for (const auto& extent : state["shape"]) {
      const bool is_extent = extent.is_number_unsigned() && extent.get<uint64_t>() > 0 &&
                             extent.get<uint64_t>() < (uint64_t{1} << 31);
      if (!is_extent || weight->shape.size() == 2) return Wrong("has no matrix's shape");
      weight->shape.push_back(extent.get<int64_t>());
    }
    weight->block = state["blocksize"].get<int64_t>();
    if (!state.contains("nested_blocksize")) return absl::OkStatus();
    const bool has_offset = state.contains("nested_offset") && state["nested_offset"].is_number();
    if (!is_count("nested_blocksize") || state["nested_blocksize"] == 0 || !has_offset) {
      return Wrong("has no nested_blocksize above 0 and nested_offset in its state");
    }
    weight->nested_block = state["nested_blocksize"].get<int64_t>();
    weight->nested_offset = state["nested_offset"].get<float>();
    return absl::OkStatus();
  }

  const Tensors& tensors_;
  const std::string name_;
  const TensorPlace& state_;
  const OpenTensorFile& file_;  // that has the state
};

// Files of a weight, which begin with number `first`.
struct Files {
  const std::vector<OpenTensorFile>& all;
  size_t first;
};

template <typename T>
absl::StatusOr<std::vector<T>> ValuesOf(const Files& files, const ShardedTensor& tensor) {
  std::string bytes;
  bytes.reserve(tensor.place.bytes);
  const OpenTensorFile& file = files.all[files.first + tensor.file];
  RETURN_IF_ERROR(file.Read(tensor.place, kPieceBytes, [&bytes](std::string_view piece) {
    bytes += piece;
    return absl::OkStatus();
  }));
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

absl::StatusOr<std::vector<float>> ScalesOf(const PackedWeight& weight, const Files& files) {
  if (weight.nested_block == 0) return ValuesOf<float>(files, weight.scales);
  ASSIGN_OR_RETURN(const auto codes, ValuesOf<uint8_t>(files, weight.scales));
  ASSIGN_OR_RETURN(const auto levels, ValuesOf<float>(files, weight.nested_levels));
  ASSIGN_OR_RETURN(const auto nested, ValuesOf<float>(files, weight.nested_scales));
  std::vector<float> scales;
  for (size_t i = 0; i < codes.size(); ++i) {
    const float product = levels[codes[i]] * nested[i / static_cast<size_t>(weight.nested_block)];
    scales.push_back(product + weight.nested_offset);
  }
  return scales;
}

}  // namespace

int64_t PackedWeight::elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

absl::StatusOr<std::vector<PackedWeight>> PackedWeights(const std::vector<OpenTensorFile>& files,
                                                        const Tensors& tensors) {
  std::vector<PackedWeight> weights;
  for (const auto& [name, tensor] : tensors) {
    const size_t state = name.rfind(kOtherState);
    if (state == std::string::npos) continue;
    if (!absl::EndsWith(name, kState)) {
      return absl::InvalidArgumentError(
          absl::StrCat(files[tensor.file].path(), ": ", name, ", want weights in nf4 or numbers"));
    }
    ASSIGN_OR_RETURN(weights.emplace_back(), Reading(files, tensors, name.substr(0, state)).Read());
  }
  return weights;
}

std::vector<std::string> NamesOf(const PackedWeight& weight) {
  std::vector<std::string> names;
  for (const char* suffix : {"", kState, kScales, kLevels, kNestedScales, kNestedLevels}) {
    names.push_back(weight.name + suffix);
  }
  return names;
}

absl::StatusOr<std::vector<float>> Unpacked(const PackedWeight& weight,
                                            const std::vector<OpenTensorFile>& all, size_t first) {
  const Files files = {all, first};
  ASSIGN_OR_RETURN(const auto codes, ValuesOf<uint8_t>(files, weight.codes));
  ASSIGN_OR_RETURN(const auto levels, ValuesOf<float>(files, weight.levels));
  ASSIGN_OR_RETURN(const std::vector<float> scales, ScalesOf(weight, files));
  const size_t bytes_of_block = static_cast<size_t>(weight.block) / 2;
  std::vector<float> values;
  values.reserve(2 * codes.size());
  for (size_t i = 0; i < codes.size(); ++i) {
    const float scale = scales[i / bytes_of_block];
    values.push_back(levels[codes[i] >> 4] * scale);
    values.push_back(levels[codes[i] & 0xF] * scale);
  }
  return values;
}

}  // namespace thinwire
