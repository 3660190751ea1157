#include "stage_server/stage/stage_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "compress/codecs/new_codec.h"
#include "compress/feedback/state_file.h"
#include "stage_server/stage/safetensors.h"

namespace thinwire {
namespace {

using Next = std::function<bool(std::string_view* piece)>;

constexpr size_t kPieceBytes = size_t{1} << 20;
// Bytes of a file's header that are allowed for one tensor.
constexpr uint64_t kHeaderBytes = 256;

// State that the optimizer keeps under one name: one tensor for each parameter.
struct Remembered {
  std::string name;
  std::vector<Parameter> tensors;
};

const Parameter* Named(const std::vector<const Parameter*>& parameters, const std::string& name) {
  const auto found =
      std::find_if(parameters.begin(), parameters.end(),
                   [&](const Parameter* parameter) { return parameter->spec.name == name; });
  return *found;  // optimizers know the stage's parameters and no others
}

std::vector<Remembered> RememberedOf(const LocalStage& stage) {
  const std::vector<const Parameter*> parameters = stage.parameters();
  std::vector<Remembered> all;
  for (const Optimizer* optimizer : stage.optimizers()) {
    for (const OptimizerState& state : optimizer->state()) {
      auto place = std::find_if(all.begin(), all.end(),
                                [&](const Remembered& one) { return one.name == state.name; });
      if (place == all.end()) place = all.insert(all.end(), {state.name, {}});
      place->tensors.push_back({Named(parameters, state.parameter)->spec, state.tensor, {}});
    }
  }
  return all;
}

std::vector<const Parameter*> PointersTo(const std::vector<Parameter>& tensors) {
  std::vector<const Parameter*> pointers;
  for (const Parameter& tensor : tensors) pointers.push_back(&tensor);
  return pointers;
}

const BoundarySpec& SpecOf(const LocalStage::End& end) {
  return end.sender ? end.sender->spec() : end.receiver->spec();
}

StateStore* StoreOf(const LocalStage::End& end) {
  return end.sender ? end.sender->feedback().state() : end.receiver->feedback().state();
}

bool FollowsError(const LocalStage::End& end) {
  return end.sender && end.sender->spec().level.kind == LevelKind::kByError;
}

std::vector<StoredTensor> CarriedBy(const LocalStage::End& end) {
  const auto& carry =
      end.sender ? end.sender->feedback().carry() : end.receiver->feedback().carry();
  return carry != nullptr ? carry->Parts() : std::vector<StoredTensor>();
}

bool Remembers(const LocalStage::End& end) {
  return StoreOf(end) != nullptr || !CarriedBy(end).empty() || FollowsError(end);
}

StatePart PartOf(const LocalStage::End& end) {
  StatePart part;
  part.set_cut(SpecOf(end).name);
  part.set_gradient(SpecOf(end).direction == DIRECTION_GRADIENT);
  part.set_sender(end.sender != nullptr);
  if (FollowsError(end)) {
    const LevelController::State state = end.sender->level().state();
    part.mutable_level()->set_level(state.level);
    part.mutable_level()->set_step(state.step);
    part.mutable_level()->set_error_sum(state.error_sum);
    part.mutable_level()->set_measured(state.measured);
  }
  return part;
}

// Returns the prefix of the names of an end's tensors in its file.
std::string PrefixOf(const StatePart& part) {
  return absl::StrCat(part.cut(), part.gradient() ? ".gradient" : ".activation",
                      part.sender() ? ".sender" : ".receiver");
}

std::string Spelled(const StatePart& part) {
  return part.tensors().empty() ? PrefixOf(part) : part.tensors();
}

absl::Status CheckMemory(const LocalStage& stage, bool codec_state, uint64_t available_bytes) {
  uint64_t bytes = 0;
  for (const Parameter* one : stage.parameters()) bytes += one->value.bytes() + kHeaderBytes;
  for (const Remembered& remembered : RememberedOf(stage)) {
    for (const Parameter& one : remembered.tensors) bytes += one.value.bytes() + kHeaderBytes;
  }
  for (const LocalStage::End& end : stage.ends()) {
    if (!codec_state) break;
    for (const StoredTensor& part : CarriedBy(end)) bytes += part.data.size() + kHeaderBytes;
    const StateStore* const store = StoreOf(end);
    if (store != nullptr) bytes += store->keys().size() * (store->row_bytes() + sizeof(uint64_t));
  }
  if (bytes <= available_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "stage %d: a checkpoint takes %d bytes of memory for a copy of the stage's state, %d are "
      "left: want more memory, more stages, or checkpoint.codec_state: none",
      stage.spec().stage, bytes, available_bytes));
}

absl::StatusOr<StateFile> CopyTensors(const std::string& name,
                                      const std::vector<const Parameter*>& tensors) {
  StateFile file;
  file.part.set_tensors(name);
  size_t bytes = 0;
  for (const Parameter* one : tensors) bytes += one->value.bytes() + kHeaderBytes;
  file.bytes.reserve(bytes);
  RETURN_IF_ERROR(WriteParameters(tensors, kPieceBytes, [&](std::string_view piece) {
    file.bytes += piece;
    return absl::OkStatus();
  }));
  return file;
}

absl::StatusOr<StateFile> CopyEnd(const LocalStage::End& end) {
  StateFile file;
  file.part = PartOf(end);
  RETURN_IF_ERROR(
      WriteState(PrefixOf(file.part), StoreOf(end), CarriedBy(end), [&](std::string_view piece) {
        file.bytes += piece;
        return absl::OkStatus();
      }));
  return file;
}

absl::Status RestoreLevel(const LevelState& stored, LevelController* level) {
  return level->Restore({stored.level(), stored.step(), stored.error_sum(), stored.measured()});
}

absl::Status RestoreCarry(const LocalStage::End& end, absl::Span<const StoredTensor> parts) {
  const BoundarySpec& spec = SpecOf(end);
  ASSIGN_OR_RETURN(const std::unique_ptr<Codec> codec, NewCodec(spec.codec, spec.kernels));
  ASSIGN_OR_RETURN(auto carry, codec->ReadCarry(parts, spec.sample, spec.device));
  if (end.sender) {
    end.sender->feedback().set_carry(std::move(carry));
  } else {
    end.receiver->feedback().set_carry(std::move(carry));
  }
  return absl::OkStatus();
}

absl::Status RestoreEnd(const LocalStage::End& end, const StatePart& part,
                        const std::string& file) {
  std::vector<StoredTensor> carried;
  RETURN_IF_ERROR(ReadState(PrefixOf(part), file, StoreOf(end), &carried));
  if (!carried.empty()) RETURN_IF_ERROR(RestoreCarry(end, carried));
  if (part.has_level() != FollowsError(end)) {
    return absl::InvalidArgumentError(part.has_level() ? "level: this end's does not follow errors"
                                                       : "level: is missing");
  }
  return part.has_level() ? RestoreLevel(part.level(), &end.sender->level()) : absl::OkStatus();
}

absl::Status RestoreCut(LocalStage* stage, const StatePart& part, uint64_t available_bytes,
                        const Next& next) {
  std::string file;
  for (std::string_view piece; next(&piece);) {
    if (piece.size() > available_bytes - file.size()) {
      return absl::ResourceExhaustedError(absl::StrCat("a file of more than ", available_bytes,
                                                       " bytes, which is what memory has"));
    }
    file += piece;
  }
  for (const LocalStage::End& end : stage->ends()) {
    const StatePart here = PartOf(end);
    if (PrefixOf(here) != PrefixOf(part)) continue;
    return RestoreEnd(end, part, file);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("stage ", stage->spec().stage, " has no such end of a cut"));
}

absl::Status RestoreRemembered(LocalStage* stage, const std::string& name, const Next& next) {
  const std::vector<Remembered> all = RememberedOf(*stage);
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Remembered& one) { return one.name == name; });
  if (found == all.end()) {
    return absl::InvalidArgumentError("the optimizer remembers nothing of that name");
  }
  ParameterReader reader(PointersTo(found->tensors));
  for (std::string_view piece; next(&piece);) RETURN_IF_ERROR(reader.Append(piece));
  return reader.Finish();
}

absl::Status Restore(LocalStage* stage, const StatePart& part, uint64_t available_bytes,
                     const Next& next) {
  if (part.tensors().empty()) return RestoreCut(stage, part, available_bytes, next);
  if (part.tensors() == kModelPart) return stage->ImportParameters(/*kept=*/{}, next);
  return RestoreRemembered(stage, part.tensors(), next);
}

}  // namespace

absl::StatusOr<std::vector<StateFile>> CopyState(LocalStage* stage, bool codec_state,
                                                 uint64_t available_bytes) {
  RETURN_IF_ERROR(CheckMemory(*stage, codec_state, available_bytes));
  std::vector<StateFile> files;
  ASSIGN_OR_RETURN(files.emplace_back(), CopyTensors(kModelPart, stage->parameters()));
  for (const Remembered& remembered : RememberedOf(*stage)) {
    ASSIGN_OR_RETURN(files.emplace_back(),
                     CopyTensors(remembered.name, PointersTo(remembered.tensors)));
  }
  if (!codec_state) return files;
  for (const LocalStage::End& end : stage->ends()) {
    if (!Remembers(end)) continue;
    ASSIGN_OR_RETURN(files.emplace_back(), CopyEnd(end));
  }
  return files;
}

absl::Status RestoreState(LocalStage* stage, const StatePart& part, uint64_t step,
                          uint64_t available_bytes, const Next& next) {
  const absl::Status status = Restore(stage, part, available_bytes, next);
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat(Spelled(part), ": ", status.message()));
  }
  for (Optimizer* optimizer : stage->optimizers()) optimizer->set_steps(static_cast<int64_t>(step));
  return absl::OkStatus();
}

}  // namespace thinwire
