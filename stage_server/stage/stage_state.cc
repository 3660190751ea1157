#include "stage_server/stage/stage_state.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/annotated.h"
#include "base/status.h"
#include "compress/codecs/new_codec.h"
#include "compress/feedback/state_file.h"
#include "config/replicas_spec.h"
#include "models/base_weights.h"
#include "nn/coded_parameter.h"
#include "stage_server/stage/safetensors.h"

namespace thinwire {
namespace {

// Hands a file to a sink, piece by piece.
using Write = std::function<absl::Status(const LocalStage::Sink&)>;

constexpr size_t kPieceBytes = size_t{1} << 20;
// Bytes of a file's header that are allowed for one tensor.
constexpr uint64_t kHeaderBytes = 256;

// State beside the model that has a tensor for each of some parameters: what an optimizer keeps
// under one name, or the parameters of a replica that trains locally.
struct Remembered {
  StatePart part;
  std::vector<Parameter> tensors;
  // By name, those whose tensors are codes: they have no values until these are expanded.
  std::map<std::string, OptimizerState> coded = {};
};

const Parameter* Named(const std::vector<const Parameter*>& parameters, const std::string& name) {
  const auto found =
      std::find_if(parameters.begin(), parameters.end(),
                   [&](const Parameter* parameter) { return parameter->spec.name == name; });
  return *found;  // optimizers know the stage's parameters and no others
}

// Adds an optimizer's state, in all of which `part` has the same replica or none.
void AddStates(const std::vector<const Parameter*>& parameters,
               const std::vector<OptimizerState>& states, StatePart part,
               std::vector<Remembered>* all) {
  const auto begin = static_cast<std::ptrdiff_t>(all->size());
  for (const OptimizerState& state : states) {
    auto place = std::find_if(all->begin() + begin, all->end(), [&](const Remembered& one) {
      return one.part.tensors() == state.name;
    });
    if (place == all->end()) {
      part.set_tensors(state.name);
      place = all->insert(all->end(), {part, {}});
    }
    Parameter& tensor = place->tensors.emplace_back();
    tensor.spec = Named(parameters, state.parameter)->spec;
    if (state.code == nullptr) {
      tensor.value = state.tensor;
    } else {
      place->coded.emplace(state.parameter, state);
    }
  }
}

// Gives tensors in codes what these stand for, in host memory.
absl::Status ExpandCodes(Remembered* remembered) {
  for (Parameter& one : remembered->tensors) {
    const auto coded = remembered->coded.find(one.spec.name);
    if (coded == remembered->coded.end()) continue;
    ASSIGN_OR_RETURN(one.value, NumbersOf(coded->second));
  }
  return absl::OkStatus();
}

// Overwrites codes by those of the tensors.
absl::Status TakeCodes(const Remembered& remembered, const std::vector<Parameter>& tensors) {
  for (const Parameter& one : tensors) {
    const auto coded = remembered.coded.find(one.spec.name);
    if (coded != remembered.coded.end()) RETURN_IF_ERROR(SetNumbers(coded->second, one.value));
  }
  return absl::OkStatus();
}

// Adds what replicas that train locally have each for itself, and what they share.
void AddLocal(const LocalStage& stage, bool with_models, std::vector<Remembered>* all) {
  const LocalReplicas& local = *stage.local();
  const ReplicaRange carried = local.carried();
  for (int replica = carried.first; replica < carried.end; ++replica) {
    StatePart part;
    part.set_replica(static_cast<uint32_t>(replica));
    AddStates(stage.parameters(), local.Inner(replica), part, all);
    if (!with_models) continue;
    part.set_tensors(kReplicaModelPart);
    all->push_back({part, local.Values(replica)});
  }
  AddStates(stage.parameters(), local.Outer(), StatePart(), all);
}

// Returns all of it; `with_models` those of replicas, too.
std::vector<Remembered> RememberedOf(const LocalStage& stage, bool with_models) {
  std::vector<Remembered> all;
  if (stage.local() != nullptr) {
    AddLocal(stage, with_models, &all);
    return all;
  }
  AddStates(stage.parameters(), StatesOf(stage.optimizers()), StatePart(), &all);
  return all;
}

// Returns what of it is state now: between two rounds of local steps the parameters of replicas are
// those of the model.
std::vector<Remembered> RememberedOf(const LocalStage& stage) {
  return RememberedOf(stage, stage.local() != nullptr && stage.local()->in_round());
}

std::vector<const Parameter*> PointersTo(const std::vector<Parameter>& tensors) {
  std::vector<const Parameter*> pointers;
  for (const Parameter& tensor : tensors) pointers.push_back(&tensor);
  return pointers;
}

// Memory that one end of one direction has of the messages of one replica. The end lives as long as
// the stage.
struct Memory {
  StatePart part;  // except for its level
  const BoundarySpec* spec = nullptr;
  FeedbackSender* sender = nullptr;  // either this and `level`
  LevelController* level = nullptr;
  FeedbackReceiver* receiver = nullptr;  // or this
  bool is_of_part = false;               // of a piece that one carrier of a replica has

  StateStore* store() const { return sender ? sender->state() : receiver->state(); }
  const std::shared_ptr<const Carry>& carry() const {
    return sender ? sender->carry() : receiver->carry();
  }
  bool follows_error() const { return level && spec->level.kind == LevelKind::kByError; }
};

Memory MemoryOf(const LocalStage::End& end, int replica) {
  Memory memory;
  memory.spec = end.sender ? &end.sender->spec() : &end.receiver->spec();
  memory.part.set_cut(memory.spec->name);
  memory.part.set_gradient(memory.spec->direction == DIRECTION_GRADIENT);
  memory.part.set_sender(end.sender != nullptr);
  if (memory.spec->replicas > 1) memory.part.set_replica(static_cast<uint32_t>(replica));
  if (end.sender) {
    memory.sender = &end.sender->feedback(replica);
    memory.level = &end.sender->level(replica);
  } else {
    memory.receiver = &end.receiver->feedback(replica);
  }
  return memory;
}

StatePart PartOf(const ReplicaAverager::Contributor& contributor) {
  StatePart part;
  part.set_cut(kReplicas);
  part.set_gradient(true);
  part.set_sender(true);
  part.set_replica(static_cast<uint32_t>(contributor.replica));
  part.set_piece(contributor.piece);
  return part;
}

Memory MemoryOf(const ReplicaAverager::Contributor& contributor) {
  Memory memory;
  memory.spec = &contributor.encoder->spec();
  memory.part = PartOf(contributor);
  memory.sender = &contributor.encoder->feedback();
  memory.level = &contributor.encoder->level();
  memory.is_of_part = contributor.is_of_part;
  return memory;
}

// Returns what this stage remembers of the replicas that are carried here.
std::vector<Memory> MemoriesOf(const LocalStage& stage) {
  std::vector<Memory> all;
  for (const LocalStage::End& end : stage.ends()) {
    for (int replica = end.replicas.first; replica < end.replicas.end; ++replica) {
      all.push_back(MemoryOf(end, replica));
    }
  }
  if (stage.averager() == nullptr) return all;
  for (const auto& contributor : stage.averager()->contributors()) {
    if (contributor.encoder != nullptr) all.push_back(MemoryOf(contributor));
  }
  return all;
}

std::vector<StoredTensor> CarriedBy(const Memory& memory) {
  return memory.carry() != nullptr ? memory.carry()->Parts() : std::vector<StoredTensor>();
}

bool IsEmpty(const Memory& memory) {
  return memory.store() == nullptr && memory.carry() == nullptr && !memory.follows_error();
}

// Returns the prefix of the names of an end's tensors in its file.
std::string PrefixOf(const StatePart& part) {
  std::string prefix = absl::StrCat(part.cut(), part.gradient() ? ".gradient" : ".activation",
                                    part.sender() ? ".sender" : ".receiver");
  if (part.has_replica()) absl::StrAppend(&prefix, ".", part.replica());
  if (part.has_piece()) absl::StrAppend(&prefix, ".", part.piece());
  return prefix;
}

std::string Spelled(const StatePart& part) {
  if (part.tensors().empty()) return PrefixOf(part);
  return part.has_replica() ? absl::StrCat(part.tensors(), " of replica ", part.replica())
                            : part.tensors();
}

// Takes those tensors out of what is copied.
void LeaveOut(const std::set<std::string>& names, std::vector<Remembered>* all) {
  const auto is_left_out = [&names](const Parameter& one) {
    return one.spec.role == ParameterSpec::Role::kFrozen &&
           names.count(FileTensors(one.spec).front().name) > 0;
  };
  for (Remembered& remembered : *all) {
    std::vector<Parameter>& tensors = remembered.tensors;
    tensors.erase(std::remove_if(tensors.begin(), tensors.end(), is_left_out), tensors.end());
  }
}

// Returns the tensors that this carrier of replicas copies, the model first. A stage may have no
// parameters.
std::vector<Remembered> CopiedOf(const LocalStage& stage, const CopiedState& what) {
  std::vector<Remembered> all = RememberedOf(stage);
  Remembered model;
  model.part.set_tensors(kModelPart);
  for (const Parameter* one : stage.parameters()) model.tensors.push_back(*one);
  all.insert(all.begin(), std::move(model));
  LeaveOut(what.left_out, &all);
  const bool copies_shared = what.shared || stage.spec().row() == 0;
  const auto is_not_copied = [copies_shared](const Remembered& one) {
    return one.tensors.empty() || (!copies_shared && !one.part.has_replica());
  };
  all.erase(std::remove_if(all.begin(), all.end(), is_not_copied), all.end());
  return all;
}

bool IsFixed(const Parameter& parameter) {
  return parameter.spec.role == ParameterSpec::Role::kFrozen;
}

// Returns the bytes of a copy; of what stands in codes until then, of it and what it is made of.
uint64_t ValueBytesOf(const Parameter& parameter) {
  if (parameter.is_coded()) return static_cast<uint64_t>(ValueBytes(parameter.spec));
  if (!parameter.value.empty()) return parameter.value.bytes();
  return 2 * sizeof(float) * static_cast<uint64_t>(parameter.spec.shape.elements());
}

uint64_t TensorBytes(const LocalStage& stage, const CopiedState& what) {
  uint64_t bytes = 0;
  for (const Remembered& remembered : CopiedOf(stage, what)) {
    for (const Parameter& one : remembered.tensors) {
      const uint64_t of_value = ValueBytesOf(one);
      bytes += (what.outlives || !IsFixed(one) ? of_value : 0) + kHeaderBytes;
    }
  }
  return bytes;
}

absl::Status CheckMemory(const LocalStage& stage, const CopiedState& what,
                         uint64_t available_bytes) {
  uint64_t bytes = TensorBytes(stage, what);
  for (const Memory& memory : MemoriesOf(stage)) {
    if (!what.codec_state) break;
    for (const StoredTensor& part : CarriedBy(memory)) bytes += part.data.size() + kHeaderBytes;
    const StateStore* const store = memory.store();
    if (store != nullptr) bytes += store->keys().size() * (store->row_bytes() + sizeof(uint64_t));
  }
  if (bytes <= available_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "stage %d: a checkpoint takes %d bytes of memory for a copy of the stage's state, %d are "
      "left: want more memory, more stages, or checkpoint.codec_state: none",
      stage.spec().stage, bytes, available_bytes));
}

absl::StatusOr<StateFile> CopyTensors(StatePart part,
                                      const std::vector<const Parameter*>& tensors) {
  StateFile file;
  file.part = std::move(part);
  size_t bytes = 0;
  for (const Parameter* one : tensors) bytes += one->value.bytes() + kHeaderBytes;
  file.bytes.reserve(bytes);
  RETURN_IF_ERROR(WriteParameters(tensors, kPieceBytes, [&](std::string_view piece) {
    file.bytes += piece;
    return absl::OkStatus();
  }));
  return file;
}

// Copies those that are trained, and shares the frozen ones unless the copy outlives the stage.
absl::StatusOr<StateFile> CopyParameters(StatePart part, const std::vector<Parameter>& tensors,
                                         bool outlives) {
  StateFile file;
  file.part = std::move(part);
  for (const Parameter& one : tensors) {
    if (outlives || !IsFixed(one)) {
      ASSIGN_OR_RETURN(file.parameters.emplace_back(), CopiedToHost(one));
      continue;
    }
    Parameter& kept = file.parameters.emplace_back();
    kept.spec = one.spec;
    kept.value = one.value;
    kept.codes = one.codes;
    kept.scales = one.scales;
  }
  return file;
}

// Lets copies of a weight that another stage has stand for it, as they do in files. Who takes over
// the state of this stage has no other.
void NameCopies(const LocalStage& stage, std::vector<Parameter>* tensors) {
  const std::vector<const Parameter*> here = stage.parameters();
  for (Parameter& one : *tensors) {
    const std::string original = one.spec.tied_to;
    const auto is_original = [&](const Parameter* other) { return other->spec.name == original; };
    if (original.empty() || std::any_of(here.begin(), here.end(), is_original)) continue;
    one.spec.name = original;
    one.spec.tied_to.clear();
    if (!one.spec.slice.whole.empty()) one.spec.slice.whole = original;
  }
}

// The first of a row of carriers copies the tensors of all its parts.
absl::Status CopyAllTensors(const LocalStage& stage, const CopiedState& what,
                            std::vector<StateFile>* files) {
  for (Remembered& remembered : CopiedOf(stage, what)) {
    RETURN_IF_ERROR(ExpandCodes(&remembered));
    RETURN_IF_ERROR(stage.GatherParts(&remembered.tensors));
    if (stage.spec().place() > 0) continue;
    if (what.shared) NameCopies(stage, &remembered.tensors);
    if (std::any_of(remembered.tensors.begin(), remembered.tensors.end(), IsFixed)) {
      ASSIGN_OR_RETURN(files->emplace_back(),
                       CopyParameters(remembered.part, remembered.tensors, what.outlives));
      continue;
    }
    ASSIGN_OR_RETURN(files->emplace_back(),
                     CopyTensors(remembered.part, PointersTo(remembered.tensors)));
  }
  return absl::OkStatus();
}

absl::StatusOr<StateFile> CopyMemory(const Memory& memory) {
  StateFile file;
  file.part = memory.part;
  if (memory.follows_error()) {
    const LevelController::State state = memory.level->state();
    file.part.mutable_level()->set_level(state.level);
    file.part.mutable_level()->set_step(state.step);
    file.part.mutable_level()->set_error_sum(state.error_sum);
    file.part.mutable_level()->set_measured(state.measured);
  }
  RETURN_IF_ERROR(
      WriteState(PrefixOf(file.part), memory.store(), CarriedBy(memory), [&](auto piece) {
        file.bytes += piece;
        return absl::OkStatus();
      }));
  return file;
}

absl::Status RestoreLevel(const LevelState& stored, LevelController* level) {
  return level->Restore({stored.level(), stored.step(), stored.error_sum(), stored.measured()});
}

absl::Status RestoreCarry(const Memory& memory, absl::Span<const StoredTensor> parts) {
  const BoundarySpec& spec = *memory.spec;
  ASSIGN_OR_RETURN(const std::unique_ptr<Codec> codec, NewCodec(spec.codec, spec.kernels));
  ASSIGN_OR_RETURN(auto carry, codec->ReadCarry(parts, spec.sample, spec.device));
  if (memory.sender) {
    memory.sender->set_carry(std::move(carry));
  } else {
    memory.receiver->set_carry(std::move(carry));
  }
  return absl::OkStatus();
}

absl::Status RestoreMemory(const Memory& memory, const StatePart& part, const std::string& file) {
  std::vector<StoredTensor> carried;
  RETURN_IF_ERROR(ReadState(PrefixOf(part), file, memory.store(), &carried));
  if (!carried.empty()) RETURN_IF_ERROR(RestoreCarry(memory, carried));
  if (part.has_level() != memory.follows_error()) {
    return absl::InvalidArgumentError(part.has_level() ? "level: this end's does not follow errors"
                                                       : "level: is missing");
  }
  return part.has_level() ? RestoreLevel(part.level(), memory.level) : absl::OkStatus();
}

// Takes of what a peer remembers of its contributions the part by which they are decoded here;
// null: they are not.
absl::Status RestoreOfPeer(MessageDecoder* decoder, const StatePart& part,
                           const std::string& file) {
  if (decoder == nullptr) return absl::OkStatus();
  Memory memory;
  memory.spec = &decoder->spec();
  memory.receiver = &decoder->feedback();
  std::vector<StoredTensor> carried;
  RETURN_IF_ERROR(ReadReceived(PrefixOf(part), file, memory.store(), &carried));
  return carried.empty() ? absl::OkStatus() : RestoreCarry(memory, carried);
}

absl::Status RestoreCut(LocalStage* stage, const StatePart& part, uint64_t available_bytes,
                        const Write& write) {
  std::string file;
  RETURN_IF_ERROR(write([&](std::string_view piece) {
    if (piece.size() > available_bytes - file.size()) {
      return absl::ResourceExhaustedError(absl::StrCat("a file of more than ", available_bytes,
                                                       " bytes, which is what memory has"));
    }
    file += piece;
    return absl::OkStatus();
  }));
  for (const Memory& memory : MemoriesOf(*stage)) {
    if (PrefixOf(memory.part) == PrefixOf(part)) return RestoreMemory(memory, part, file);
  }
  if (part.has_piece() && stage->averager() != nullptr) {
    for (const auto& contributor : stage->averager()->contributors()) {
      if (PrefixOf(PartOf(contributor)) == PrefixOf(part)) {
        return RestoreOfPeer(contributor.decoder, part, file);
      }
    }
  }
  const bool is_elsewhere = part.has_piece() && stage->averager() != nullptr &&
                            stage->averager()->IsElsewhere(part.piece());
  if (is_elsewhere) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("stage ", stage->spec().stage, " has no such end of a cut"));
}

absl::Status RestoreRemembered(LocalStage* stage, const StatePart& part, const Write& write) {
  std::vector<Remembered> all = RememberedOf(*stage, /*with_models=*/true);
  const auto found = std::find_if(all.begin(), all.end(), [&](const Remembered& one) {
    return Spelled(one.part) == Spelled(part);
  });
  if (found == all.end()) {
    return absl::InvalidArgumentError("the optimizer remembers nothing of that name");
  }
  RETURN_IF_ERROR(ExpandCodes(&*found));
  std::vector<Parameter> tensors = found->tensors;
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(), IsFixed), tensors.end());
  ParameterReader reader(PointersTo(tensors), stage->AllParameters());
  RETURN_IF_ERROR(write([&reader](std::string_view piece) { return reader.Append(piece); }));
  RETURN_IF_ERROR(reader.Finish());
  RETURN_IF_ERROR(TakeCodes(*found, tensors));
  if (part.tensors() == kReplicaModelPart) stage->local()->ValuesRestored();
  return absl::OkStatus();
}

absl::Status Restore(LocalStage* stage, const StatePart& part, uint64_t available_bytes,
                     const Write& write, const std::vector<std::string>& kept) {
  if (part.tensors().empty()) return RestoreCut(stage, part, available_bytes, write);
  if (part.tensors() == kModelPart) return stage->ReplaceParameters(kept, write);
  return RestoreRemembered(stage, part, write);
}

absl::Status Restore(LocalStage* stage, const StatePart& part, uint64_t step,
                     uint64_t available_bytes, const Write& write,
                     const std::vector<std::string>& kept) {
  RETURN_IF_ERROR(Annotated(Restore(stage, part, available_bytes, write, kept), Spelled(part)));
  for (Optimizer* optimizer : stage->optimizers()) optimizer->set_steps(static_cast<int64_t>(step));
  return absl::OkStatus();
}

}  // namespace

uint64_t FileBytes(const StateFile& file) {
  return file.parameters.empty() ? file.bytes.size()
                                 : ParameterFileBytes(PointersTo(file.parameters));
}

absl::Status WriteFile(const StateFile& file, size_t piece_bytes,
                       const std::function<absl::Status(std::string_view)>& sink) {
  if (!file.parameters.empty()) {
    return WriteParameters(PointersTo(file.parameters), piece_bytes, sink);
  }
  for (std::string_view rest = file.bytes; !rest.empty();
       rest.remove_prefix(std::min(piece_bytes, rest.size()))) {
    RETURN_IF_ERROR(sink(rest.substr(0, piece_bytes)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<StateFile>> CopyState(LocalStage* stage, const CopiedState& what,
                                                 uint64_t available_bytes) {
  RETURN_IF_ERROR(CheckMemory(*stage, what, available_bytes));
  std::vector<StateFile> files;
  RETURN_IF_ERROR(CopyAllTensors(*stage, what, &files));
  if (!what.codec_state) return files;
  for (const Memory& memory : MemoriesOf(*stage)) {
    // The first carrier of a row copies all that is the same at its others.
    if (IsEmpty(memory) || (stage->spec().place() > 0 && !memory.is_of_part)) continue;
    ASSIGN_OR_RETURN(files.emplace_back(), CopyMemory(memory));
  }
  return files;
}

absl::Status RestoreState(LocalStage* stage, const StatePart& part, uint64_t step,
                          uint64_t available_bytes,
                          const std::function<bool(std::string_view* piece)>& next,
                          const std::vector<std::string>& kept) {
  const auto write = [&next](const LocalStage::Sink& sink) {
    absl::Status status;
    for (std::string_view piece; status.ok() && next(&piece);) status = sink(piece);
    return status;
  };
  return Restore(stage, part, step, available_bytes, write, kept);
}

absl::Status RestoreState(LocalStage* stage, const StateFile& file, uint64_t step,
                          uint64_t available_bytes) {
  const auto write = [&file](const LocalStage::Sink& sink) {
    return WriteFile(file, kPieceBytes, sink);
  };
  return Restore(stage, file.part, step, available_bytes, write, /*kept=*/{});
}

}  // namespace thinwire
