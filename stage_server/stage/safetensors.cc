#include "stage_server/stage/safetensors.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "compress/file_values.h"
#include "nn/coded_parameter.h"

namespace thinwire {
namespace {

using Sink = std::function<absl::Status(std::string_view)>;

constexpr uint64_t kMaxHeaderBytes = uint64_t{16} << 20;  // of a file that is read

// Rows of a tensor of the file to be written, and the parameter that has them, or that has them in
// its gradient.
struct Source {
  FileTensor tensor;
  const Parameter* parameter = nullptr;
  bool is_gradient = false;
};

// Returns the sources by tensor of the file, in the order of the first source of each. A tensor has
// several where its slices are parameters of their own.
std::vector<std::vector<Source>> ByTensor(std::vector<Source> sources) {
  std::vector<std::vector<Source>> tensors;
  std::map<std::string, size_t> places;
  for (Source& source : sources) {
    const auto [place, is_new] = places.emplace(source.tensor.name, tensors.size());
    if (is_new) tensors.emplace_back();
    tensors[place->second].push_back(std::move(source));
  }
  return tensors;
}

absl::Status InPieces(std::string_view bytes, size_t piece_bytes, const Sink& sink) {
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece_bytes, bytes.size()))) {
    RETURN_IF_ERROR(sink(bytes.substr(0, piece_bytes)));
  }
  return absl::OkStatus();
}

float* RowsOf(const Tensor& parameter, const FileTensor& tensor) {
  return static_cast<float*>(parameter.data()) + tensor.first_row * tensor.row_elements;
}

absl::Status Read(const Source& source, absl::Span<float> rows) {
  if (!source.is_gradient) return ReadRows(*source.parameter, source.tensor.first_row, rows);
  const Tensor& gradient = source.parameter->gradient;
  return ToStatus(gradient.device()->CopyToHost(rows.data(), RowsOf(gradient, source.tensor),
                                                rows.size() * sizeof(float)));
}

std::vector<Source> SourcesOf(const std::vector<const Parameter*>& parameters) {
  std::vector<Source> sources;
  for (const Parameter* one : parameters) {
    if (!StandsInFiles(one->spec)) continue;
    for (FileTensor& tensor : FileTensors(one->spec)) sources.push_back({std::move(tensor), one});
  }
  return sources;
}

// Returns the part of a file before the tensors. Sets *bytes to theirs.
std::string PrefixOf(const std::vector<std::vector<Source>>& tensors,
                     std::vector<uint64_t>* bytes) {
  Safetensors file;
  for (const std::vector<Source>& slices : tensors) {
    const FileTensor& tensor = slices.front().tensor;
    file.tensors.push_back({tensor.name, "F32", tensor.shape, {}});
    bytes->push_back(static_cast<uint64_t>(tensor.file_elements()) * sizeof(float));
  }
  return SafetensorsPrefix(file, *bytes);
}

absl::Status WriteSources(std::vector<Source> sources, size_t piece_bytes, const Sink& sink) {
  const std::vector<std::vector<Source>> tensors = ByTensor(std::move(sources));
  std::vector<uint64_t> bytes;
  RETURN_IF_ERROR(InPieces(PrefixOf(tensors, &bytes), piece_bytes, sink));
  std::vector<float> rows, in_file;
  for (size_t i = 0; i < tensors.size(); ++i) {
    in_file.resize(bytes[i] / sizeof(float));
    for (const Source& source : tensors[i]) {
      rows.resize(static_cast<size_t>(source.tensor.elements()));
      RETURN_IF_ERROR(Read(source, absl::MakeSpan(rows)));
      ToFileOrder(source.tensor, rows, absl::MakeSpan(in_file));
    }
    RETURN_IF_ERROR(
        InPieces({reinterpret_cast<const char*>(in_file.data()), bytes[i]}, piece_bytes, sink));
  }
  return absl::OkStatus();
}

absl::Status CheckTensor(const TensorPlace& is, const FileTensor& want) {
  if (IsFloat(is.dtype) && is.shape == want.shape) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("parameter ", is.name, ": ", is.dtype, " [",
                                                 absl::StrJoin(is.shape, ", "), "], want ",
                                                 IsFloat(is.dtype) ? is.dtype : "F32, F16 or BF16",
                                                 " [", absl::StrJoin(want.shape, ", "), "]"));
}

}  // namespace

uint64_t ParameterFileBytes(const std::vector<const Parameter*>& parameters) {
  std::vector<uint64_t> bytes;
  const uint64_t prefix = PrefixOf(ByTensor(SourcesOf(parameters)), &bytes).size();
  return std::accumulate(bytes.begin(), bytes.end(), prefix);
}

absl::Status WriteParameters(const std::vector<const Parameter*>& parameters, size_t piece_bytes,
                             const Sink& sink) {
  return WriteSources(SourcesOf(parameters), piece_bytes, sink);
}

absl::Status WriteGradients(const std::vector<const Parameter*>& parameters, size_t piece_bytes,
                            const Sink& sink) {
  std::vector<Source> sources;
  for (const Parameter* one : parameters) {
    if (!one->spec.is_trained() || !StandsInFiles(one->spec)) continue;
    ParameterSpec as_it_is;
    as_it_is.name = one->spec.name;
    as_it_is.shape = one->spec.shape;
    as_it_is.slice = one->spec.slice;
    sources.push_back({FileTensors(as_it_is)[0], one, /*is_gradient=*/true});
  }
  return WriteSources(std::move(sources), piece_bytes, sink);
}

ParameterReader::ParameterReader(const std::vector<const Parameter*>& parameters,
                                 const std::vector<ParameterSpec>& others) {
  for (const ParameterSpec& other : others) {
    for (const FileTensor& tensor : FileTensors(other)) of_others_.insert(tensor.name);
  }
  for (const Parameter* parameter : parameters) targets_.push_back({parameter, {}});
  for (Target& target : targets_) {
    if (!target.is_frozen() && !target.has_gradient()) {
      target.values.resize(static_cast<size_t>(target.parameter->value.elements()));
    }
    for (FileTensor& tensor : FileTensors(target.parameter->spec)) {
      const std::string name = tensor.name;
      wanted_.insert({name, {&target, std::move(tensor)}});
    }
  }
}

uint64_t ParameterReader::MostBytes() const {
  uint64_t bytes = kMaxHeaderBytes;
  for (const Target& target : targets_) {
    bytes += static_cast<uint64_t>(target.parameter->spec.shape.elements()) * sizeof(float);
  }
  return bytes;
}

absl::Status ParameterReader::Append(std::string_view piece) {
  while (!piece.empty()) {
    if (part_ == Part::kNothing) {
      return absl::DataLossError(
          absl::StrCat("safetensors: ", piece.size(), " bytes behind the last tensor"));
    }
    const size_t taken = std::min<uint64_t>(piece.size(), want_bytes_ - bytes_.size());
    bytes_ += piece.substr(0, taken);
    piece.remove_prefix(taken);
    if (bytes_.size() == want_bytes_) RETURN_IF_ERROR(PartCame());
  }
  return absl::OkStatus();
}

absl::Status ParameterReader::PartCame() {
  if (part_ == Part::kTensors) {
    RETURN_IF_ERROR(TensorCame());
    ++next_tensor_;
    AwaitNextTensor();
    return absl::OkStatus();
  }
  if (part_ == Part::kHeader) return HeaderCame();
  want_bytes_ = SafetensorsHeaderBytes(bytes_);
  if (want_bytes_ > kMaxHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrCat("parameters of more than ", MostBytes(),
                                                   " bytes, this stage's and a header of 16 MiB"));
  }
  if (want_bytes_ == 0) return absl::DataLossError("safetensors: a header of 0 bytes");
  bytes_.clear();
  part_ = Part::kHeader;
  return absl::OkStatus();
}

absl::Status ParameterReader::HeaderCame() {
  ASSIGN_OR_RETURN(SafetensorsHeader header,
                   ParseSafetensorsHeader(bytes_, /*data_bytes=*/std::nullopt));
  std::map<std::string_view, const TensorPlace*> there;
  for (const TensorPlace& tensor : header.tensors) there[tensor.name] = &tensor;
  for (const auto& [name, wanted] : wanted_) {
    const auto found = there.find(name);
    if (found == there.end()) {
      return absl::InvalidArgumentError(absl::StrCat("parameter ", name, " is missing"));
    }
    RETURN_IF_ERROR(CheckTensor(*found->second, wanted.tensor));
  }
  for (const auto& [name, tensor] : there) {
    if (wanted_.count(std::string(name)) + of_others_.count(std::string(name)) > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", tensor->name, " is no parameter of this stage"));
  }
  tensors_ = std::move(header.tensors);
  part_ = Part::kTensors;
  AwaitNextTensor();
  return absl::OkStatus();
}

void ParameterReader::AwaitNextTensor() {
  bytes_.clear();
  // Tensors without elements have no bytes in the file.
  while (next_tensor_ < tensors_.size() && tensors_[next_tensor_].bytes == 0) ++next_tensor_;
  if (next_tensor_ == tensors_.size()) {
    part_ = Part::kNothing;
  } else {
    want_bytes_ = tensors_[next_tensor_].bytes;
    bytes_.reserve(want_bytes_);
  }
}

absl::Status ParameterReader::TensorCame() {
  const TensorPlace& place = tensors_[next_tensor_];
  const std::vector<float> in_file = Widened(place.dtype, bytes_);
  std::vector<float> rows;
  const auto [first, last] = wanted_.equal_range(place.name);
  for (auto wanted = first; wanted != last; ++wanted) {
    auto& [target, tensor] = wanted->second;
    rows.resize(static_cast<size_t>(tensor.elements()));
    FromFileOrder(tensor, in_file, absl::MakeSpan(rows));
    // The values wait in the gradient, whose memory is there anyway, or in memory of the reader. So
    // a file that breaks off changes no parameter but frozen ones, a second copy of which would be
    // as large as the model.
    const Tensor& gradient = target->parameter->gradient;
    if (target->is_frozen()) {
      RETURN_IF_ERROR(WriteRows(*target->parameter, tensor.first_row, rows));
    } else if (target->has_gradient()) {
      RETURN_IF_ERROR(ToStatus(gradient.device()->CopyFromHost(
          RowsOf(gradient, tensor), rows.data(), rows.size() * sizeof(float))));
    } else {
      std::copy(rows.begin(), rows.end(),
                target->values.begin() + tensor.first_row * tensor.row_elements);
    }
  }
  return absl::OkStatus();
}

absl::Status ParameterReader::Finish() {
  if (part_ != Part::kNothing) {
    return absl::DataLossError(absl::StrCat(
        "safetensors: the file ends ", want_bytes_ - bytes_.size(), " bytes before the end of its ",
        part_ == Part::kTensors  ? absl::StrCat("tensor ", tensors_[next_tensor_].name)
        : part_ == Part::kHeader ? "header"
                                 : "length"));
  }
  for (Target& target : targets_) {
    if (target.is_frozen()) continue;
    const Tensor &value = target.parameter->value, &gradient = target.parameter->gradient;
    if (target.has_gradient()) {
      target.values.resize(static_cast<size_t>(value.elements()));
      RETURN_IF_ERROR(ToStatus(
          gradient.device()->CopyToHost(target.values.data(), gradient.data(), gradient.bytes())));
    }
    RETURN_IF_ERROR(
        ToStatus(value.device()->CopyFromHost(value.data(), target.values.data(), value.bytes())));
    target.values = {};
  }
  return absl::OkStatus();
}

}  // namespace thinwire
