#include "stage_server/initial_folder.h"

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/sha256.h"
#include "base/status.h"

namespace thinwire {
namespace {

constexpr char kInitField[] = "init";
constexpr size_t kReadBytes = size_t{1} << 20;

}  // namespace

absl::StatusOr<InitialFolder> InitialFolder::Open(const std::string& dir) {
  ASSIGN_OR_RETURN(ModelFolder folder, Annotated(ModelFolder::Open(dir), kInitField));
  return InitialFolder(std::move(folder));
}

absl::StatusOr<ListInitialResponse> InitialFolder::List() const {
  ListInitialResponse response;
  response.set_folder(folder_.dir());
  for (const auto& [name, entry] : folder_.tensors()) {
    ListInitialResponse::Tensor& tensor = *response.add_tensors();
    tensor.set_name(name);
    tensor.set_dtype(entry.place.dtype);
    *tensor.mutable_shape() = {entry.place.shape.begin(), entry.place.shape.end()};
    tensor.set_bytes(entry.place.bytes);
  }
  const absl::StatusOr<std::string> config = ReadFile(folder_.dir() + "/config.json");
  if (config.ok()) {
    response.set_config_sha256(Sha256(*config));
  } else if (!absl::IsNotFound(config.status())) {
    return Annotated(config.status(), kInitField);
  }
  return response;
}

absl::StatusOr<const ModelFolder::Entry*> InitialFolder::Find(const std::string& name) const {
  const auto found = folder_.tensors().find(name);
  if (found != folder_.tensors().end()) return &found->second;
  return absl::InvalidArgumentError(
      absl::StrCat(kInitField, ": ", folder_.dir(), ": has no tensor ", name));
}

absl::Status InitialFolder::CheckEqual(const ReadInitialRequest::Tensor& tensor) const {
  ASSIGN_OR_RETURN(const ModelFolder::Entry* const source, Find(tensor.source()));
  for (const std::string& name : tensor.equal()) {
    ASSIGN_OR_RETURN(const ModelFolder::Entry* const other, Find(name));
    ASSIGN_OR_RETURN(const bool are_equal, folder_.AreEqual(*source, *other));
    if (are_equal) continue;
    return absl::InvalidArgumentError(absl::StrCat(kInitField, ": ", folder_.dir(), ": ", name,
                                                   " and ", tensor.source(),
                                                   " differ, but are one parameter of the model"));
  }
  return absl::OkStatus();
}

absl::Status InitialFolder::Write(const ReadInitialRequest& request, const FileSink& sink,
                                  ReadInitialResponse* response) const {
  Safetensors file;
  std::vector<uint64_t> bytes;
  std::vector<const ModelFolder::Entry*> entries;
  for (const ReadInitialRequest::Tensor& tensor : request.tensors()) {
    RETURN_IF_ERROR(CheckEqual(tensor));
    ASSIGN_OR_RETURN(entries.emplace_back(), Find(tensor.source()));
    const TensorPlace& place = entries.back()->place;
    file.tensors.push_back({tensor.name(), place.dtype, place.shape, {}});
    bytes.push_back(place.bytes);
  }
  RETURN_IF_ERROR(sink(SafetensorsPrefix(file, bytes)));
  for (const ModelFolder::Entry* const entry : entries) {
    Sha256Stream sum;
    const auto pass_on = [&](std::string_view piece) {
      sum.Add(piece);
      return sink(piece);
    };
    RETURN_IF_ERROR(Annotated(folder_.Read(*entry, kReadBytes, pass_on), kInitField));
    response->add_sha256(sum.Digest());
  }
  return absl::OkStatus();
}

}  // namespace thinwire
