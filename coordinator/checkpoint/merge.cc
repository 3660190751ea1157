#include "coordinator/checkpoint/merge.h"

#include <cstring>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status.h"
#include "base/tensor_file.h"

namespace thinwire {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr char kWeight[] = ".weight", kA[] = ".lora_A.weight", kB[] = ".lora_B.weight";

using Places = std::map<std::string, const TensorPlace*>;

absl::StatusOr<const TensorPlace*> Find(const std::string& name, const OpenTensorFile& file,
                                        const Places& places) {
  const auto found = places.find(name);
  if (found == places.end()) {
    return absl::DataLossError(absl::StrCat(file.path(), ": has no ", name));
  }
  if (found->second->dtype == "F32" && found->second->shape.size() == 2) return found->second;
  return absl::DataLossError(absl::StrCat(file.path(), ": ", name, " is ", found->second->dtype,
                                          " [", absl::StrJoin(found->second->shape, ", "),
                                          "], want F32 with two axes"));
}

absl::StatusOr<std::vector<float>> ValuesOf(const OpenTensorFile& file, const TensorPlace& place) {
  std::string bytes;
  RETURN_IF_ERROR(file.Read(place, kPieceBytes, [&bytes](std::string_view piece) {
    bytes += piece;
    return absl::OkStatus();
  }));
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Adds s B A to W: [out, in], or [in, out] if it is transposed.   A: [rank, in]   B: [out, rank]
void AddProduct(const Merging& merging, int64_t rank, int64_t in, int64_t out,
                const std::vector<float>& a, const std::vector<float>& b, std::vector<float>* w) {
  const int64_t of_row = merging.transposed ? 1 : in, of_column = merging.transposed ? out : 1;
  for (int64_t row = 0; row < out; ++row) {
    for (int64_t column = 0; column < in; ++column) {
      double sum = 0;
      for (int64_t k = 0; k < rank; ++k) {
        sum += static_cast<double>(b[row * rank + k]) * static_cast<double>(a[k * in + column]);
      }
      (*w)[row * of_row + column * of_column] += static_cast<float>(merging.scale * sum);
    }
  }
}

// Returns the weight of a layer, whose values are given, with its adapter in it.
absl::StatusOr<std::vector<float>> Merged(const OpenTensorFile& file, const Places& places,
                                          const std::string& layer, const Merging& merging,
                                          std::vector<float> values) {
  ASSIGN_OR_RETURN(const TensorPlace* const weight, Find(layer + kWeight, file, places));
  ASSIGN_OR_RETURN(const TensorPlace* const a, Find(layer + kA, file, places));
  ASSIGN_OR_RETURN(const TensorPlace* const b, Find(layer + kB, file, places));
  const int64_t rank = a->shape[0], in = a->shape[1], out = b->shape[0];
  std::vector<int64_t> wanted = {out, in};
  if (merging.transposed) std::swap(wanted[0], wanted[1]);
  if (weight->shape != wanted || b->shape[1] != rank) {
    return absl::DataLossError(absl::StrCat(
        file.path(), ": the adapter of ", layer, " is for a weight of [",
        absl::StrJoin(wanted, ", "), "], which is [", absl::StrJoin(weight->shape, ", "), "]"));
  }
  ASSIGN_OR_RETURN(const std::vector<float> of_a, ValuesOf(file, *a));
  ASSIGN_OR_RETURN(const std::vector<float> of_b, ValuesOf(file, *b));
  AddProduct(merging, rank, in, out, of_a, of_b, &values);
  return values;
}

}  // namespace

absl::Status MergeFile(const std::string& from, const std::string& to, const Mergings& mergings,
                       const Originals* originals, const std::function<absl::Status()>& check) {
  ASSIGN_OR_RETURN(const OpenTensorFile file, OpenTensorFile::Open(from));
  Places places;
  for (const TensorPlace& place : file.header().tensors) places[place.name] = &place;
  std::map<std::string, std::string> weights;  // with an adapter; the layer by the tensor's name
  std::set<std::string> left_out;
  for (const auto& [layer, merging] : mergings) {
    if (places.count(layer + kWeight) == 0) continue;  // in another file
    weights[layer + kWeight] = layer;
    left_out.insert({layer + kA, layer + kB});
  }
  Safetensors written;
  written.metadata = file.header().metadata;
  std::vector<uint64_t> bytes;
  for (const TensorPlace& place : file.header().tensors) {
    if (left_out.count(place.name) > 0) continue;
    written.tensors.push_back({place.name, place.dtype, place.shape, {}});
    bytes.push_back(place.bytes);
  }
  return ReplaceFile(to, [&](const FileSink& sink) -> absl::Status {
    RETURN_IF_ERROR(sink(SafetensorsPrefix(written, bytes)));
    for (const StoredTensor& tensor : written.tensors) {
      RETURN_IF_ERROR(check());
      const auto weight = weights.find(tensor.name);
      const bool is_merged = weight != weights.end();
      const bool is_original = originals != nullptr && originals->has(tensor.name);
      if (!is_merged && !is_original) {
        RETURN_IF_ERROR(file.Read(*places.at(tensor.name), kPieceBytes, sink));
        continue;
      }
      ASSIGN_OR_RETURN(std::vector<float> values, is_original
                                                      ? originals->Values(tensor.name)
                                                      : ValuesOf(file, *places.at(tensor.name)));
      if (is_merged) {
        const std::string& layer = weight->second;
        ASSIGN_OR_RETURN(values,
                         Merged(file, places, layer, mergings.at(layer), std::move(values)));
      }
      RETURN_IF_ERROR(
          sink({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}));
    }
    return absl::OkStatus();
  });
}

}  // namespace thinwire
