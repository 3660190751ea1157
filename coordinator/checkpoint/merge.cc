#include "coordinator/checkpoint/merge.h"

#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"
#include "base/tensor_file.h"
#include "compress/file_values.h"

namespace thinwire {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr char kWeight[] = ".weight", kA[] = ".lora_A.weight", kB[] = ".lora_B.weight";

// Returns a matrix, which must be of one of the types that are converted.
absl::StatusOr<const ModelFolder::Entry*> Find(const std::string& name, const ModelFolder& folder) {
  const auto found = folder.tensors().find(name);
  if (found == folder.tensors().end()) {
    return absl::DataLossError(absl::StrCat(folder.dir(), ": has no ", name));
  }
  const TensorPlace& place = found->second.place;
  if (IsFloat(place.dtype) && place.shape.size() == 2) return &found->second;
  return absl::DataLossError(absl::StrCat(folder.dir(), ": ", name, " is ", place.dtype, " [",
                                          absl::StrJoin(place.shape, ", "),
                                          "], want F32, F16 or BF16 with two axes"));
}

absl::StatusOr<std::vector<float>> ValuesOf(const ModelFolder& folder,
                                            const ModelFolder::Entry& entry) {
  std::string bytes;
  RETURN_IF_ERROR(folder.Read(entry, kPieceBytes, [&bytes](std::string_view piece) {
    bytes += piece;
    return absl::OkStatus();
  }));
  return Widened(entry.place.dtype, bytes);
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

// Returns the weight of a layer with its adapter in it.
absl::StatusOr<std::vector<float>> Merged(const ModelFolder& folder, const std::string& layer,
                                          const Merging& merging) {
  ASSIGN_OR_RETURN(const ModelFolder::Entry* const weight, Find(layer + kWeight, folder));
  ASSIGN_OR_RETURN(const ModelFolder::Entry* const a, Find(layer + kA, folder));
  ASSIGN_OR_RETURN(const ModelFolder::Entry* const b, Find(layer + kB, folder));
  const int64_t rank = a->place.shape[0], in = a->place.shape[1], out = b->place.shape[0];
  std::vector<int64_t> wanted = {out, in};
  if (merging.transposed) std::swap(wanted[0], wanted[1]);
  if (weight->place.shape != wanted || b->place.shape[1] != rank) {
    return absl::DataLossError(absl::StrCat(folder.dir(), ": the adapter of ", layer,
                                            " is for a weight of [", absl::StrJoin(wanted, ", "),
                                            "], which is [",
                                            absl::StrJoin(weight->place.shape, ", "), "]"));
  }
  ASSIGN_OR_RETURN(std::vector<float> values, ValuesOf(folder, *weight));
  ASSIGN_OR_RETURN(const std::vector<float> of_a, ValuesOf(folder, *a));
  ASSIGN_OR_RETURN(const std::vector<float> of_b, ValuesOf(folder, *b));
  AddProduct(merging, rank, in, out, of_a, of_b, &values);
  return values;
}

// Writes a tensor as F32, in pieces as they come.
absl::Status WriteAsF32(const ModelFolder& folder, const ModelFolder::Entry& entry,
                        const FileSink& sink) {
  const auto write = [&](std::string_view piece) {
    const std::vector<float> values = Widened(entry.place.dtype, piece);
    return sink({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  };
  return folder.Read(entry, kPieceBytes, write);
}

// Returns the layers whose weight is among the names, by the weight's name.
std::map<std::string, std::string> LayersOf(const std::vector<std::string>& names,
                                            const Mergings& mergings) {
  std::map<std::string, std::string> layers;
  for (const std::string& name : names) {
    const std::string layer(absl::StripSuffix(name, kWeight));
    if (layer != name && mergings.count(layer) > 0) layers[name] = layer;
  }
  return layers;
}

absl::Status CheckFloats(const ModelFolder& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto found = folder.tensors().find(name);
    if (found != folder.tensors().end() && IsFloat(found->second.place.dtype)) continue;
    return absl::DataLossError(absl::StrCat(
        folder.dir(), ": ",
        found == folder.tensors().end()
            ? absl::StrCat("has no ", name)
            : absl::StrCat(name, " is ", found->second.place.dtype, ", want F32, F16 or BF16")));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MergeTensors(const ModelFolder& folder, const std::vector<std::string>& names,
                          const std::string& to, const Mergings& mergings,
                          const std::function<absl::Status()>& check) {
  RETURN_IF_ERROR(CheckFloats(folder, names));
  const std::map<std::string, std::string> layers = LayersOf(names, mergings);
  std::set<std::string> left_out;
  for (const auto& [weight, layer] : layers) left_out.insert({layer + kA, layer + kB});
  Safetensors written;
  std::vector<uint64_t> bytes;
  for (const std::string& name : names) {
    if (left_out.count(name) > 0) continue;
    const TensorPlace& place = folder.tensors().at(name).place;
    written.tensors.push_back({name, "F32", place.shape, {}});
    bytes.push_back(place.dtype == "F32" ? place.bytes : 2 * place.bytes);
  }
  return ReplaceFile(to, [&](const FileSink& sink) -> absl::Status {
    RETURN_IF_ERROR(sink(SafetensorsPrefix(written, bytes)));
    for (const StoredTensor& tensor : written.tensors) {
      RETURN_IF_ERROR(check());
      const auto layer = layers.find(tensor.name);
      if (layer == layers.end()) {
        RETURN_IF_ERROR(WriteAsF32(folder, folder.tensors().at(tensor.name), sink));
        continue;
      }
      ASSIGN_OR_RETURN(const std::vector<float> values,
                       Merged(folder, layer->second, mergings.at(layer->second)));
      RETURN_IF_ERROR(
          sink({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}));
    }
    return absl::OkStatus();
  });
}

absl::Status MergeFile(const std::string& from, const std::string& to, const Mergings& mergings,
                       const std::function<absl::Status()>& check) {
  ASSIGN_OR_RETURN(const OpenTensorFile file, OpenTensorFile::Open(from));
  const size_t slash = from.rfind('/');
  ASSIGN_OR_RETURN(const ModelFolder folder,
                   ModelFolder::OpenFiles(from.substr(0, slash), {from.substr(slash + 1)}));
  std::vector<std::string> names;
  for (const TensorPlace& place : file.header().tensors) names.push_back(place.name);
  return MergeTensors(folder, names, to, mergings, check);
}

}  // namespace thinwire
