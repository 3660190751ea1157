#include "coordinator/run/model_shares.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/annotated.h"
#include "base/hub_cache.h"
#include "base/sha256.h"
#include "base/status.h"
#include "config/adapter_config.h"
#include "config/replicas_spec.h"
#include "coordinator/checkpoint/base.h"
#include "coordinator/checkpoint/folder.h"
#include "models/bottleneck.h"
#include "models/encoder.h"
#include "models/file_tensors.h"
#include "models/lora.h"
#include "models/parts.h"
#include "nn/optimizer_spec.h"

namespace thinwire {
namespace {

constexpr size_t kMostProblems = 5;  // number that one message names

// Tensors that the model needs, by name, in the order of its stages.
struct Wanted {
  std::vector<std::vector<FileTensor>> stages;
  std::map<std::string, const FileTensor*> by_name;
  std::set<std::string> frozen;  // names of tensors
  // Tied copies, which files may also have, and the parameters that they copy.
  std::map<std::string, std::string> copies;
  std::vector<std::vector<std::string>> kept;  // by stage: parameters that no file is to have
  std::set<std::string> parts;                 // parts of the model that files may lack
};

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

bool IsAny(const ParameterSpec&) { return true; }
bool IsAdapters(const ParameterSpec& parameter) { return IsOfAdapter(parameter.name); }

// Returns the part of a model that files may lack as a whole: the bottleneck of the cut of that
// name, the learned code of a sum, all adapters, or a part of an encoder's head. Empty for other
// parameters.
std::string PartOf(const Model& model, const std::string& tensor) {
  if (IsOfAdapter(tensor)) return kAdapters;
  const std::string cut = CutOfBottleneck(tensor);
  if (!cut.empty()) return cut;
  const std::string sum = SumOfCode(model, tensor);
  return sum.empty() ? HeadOf(model, tensor) : sum;
}

// Does the same for a parameter by its name in files.
std::string PartOf(const Model& model, const ParameterSpec& parameter) {
  return PartOf(model, parameter.tied_to.empty() ? parameter.name : parameter.tied_to);
}

// Returns the needed tensors, without those of the parts in `fresh`.
Wanted WantedBy(const Partition& partition,
                const std::function<bool(const ParameterSpec&)>& is_wanted,
                const std::vector<std::string>& fresh) {
  Wanted wanted;
  for (int stage = 0; stage < partition.placement.stages; ++stage) {
    std::vector<FileTensor>& own = wanted.stages.emplace_back();
    std::vector<std::string>& kept = wanted.kept.emplace_back();
    std::set<std::string> seen;
    for (const int i : StageBlocks(partition.model, partition.cuts, partition.placement, stage)) {
      for (const ParameterSpec& parameter : Parameters(partition.model.blocks[i])) {
        if (!is_wanted(parameter)) {
          kept.push_back(parameter.name);
          continue;
        }
        const std::string part = PartOf(partition.model, parameter);
        if (!part.empty()) wanted.parts.insert(part);
        if (std::find(fresh.begin(), fresh.end(), part) != fresh.end()) {
          kept.push_back(parameter.name);
          continue;
        }
        if (!StandsInFiles(parameter)) wanted.copies[parameter.name] = parameter.tied_to;
        for (FileTensor& tensor : FileTensors(parameter)) {
          if (parameter.role == ParameterSpec::Role::kFrozen) wanted.frozen.insert(tensor.name);
          if (seen.insert(tensor.name).second) own.push_back(std::move(tensor));
        }
      }
    }
  }
  for (const std::vector<FileTensor>& own : wanted.stages) {
    for (const FileTensor& tensor : own) wanted.by_name[tensor.name] = &tensor;
  }
  return wanted;
}

// Returns the model's name for a tensor of a file; for a tied copy the name of its original. Empty
// if the model does not have it.
std::string KnownAs(const std::string& name, const Wanted& wanted) {
  for (std::string& meaning : MeaningsOf(name)) {
    const auto copy = wanted.copies.find(meaning);
    if (copy != wanted.copies.end()) return copy->second;
    if (wanted.by_name.count(meaning) > 0) return std::move(meaning);
  }
  return "";
}

bool IsReadable(const std::string& dtype) {
  return dtype == "F32" || dtype == "F16" || dtype == "BF16";
}

// Returns why a tensor of the files does not fit the model; empty if it fits.
std::string Misshape(const std::string& name, const TensorPlace& is, const FileTensor& want) {
  if (IsReadable(is.dtype) && is.shape == want.shape) return "";
  return absl::StrCat(name, " is ", is.dtype, " ", ShapeText(is.shape), ", want ",
                      IsReadable(is.dtype) ? "" : "F32, F16 or BF16 ", ShapeText(want.shape));
}

// A tensor of the files, and others that must be equal to it, as machines will see that have them.
struct Matching {
  ModelFolder::Entry entry;
  std::vector<std::string> equal;
};
using Entries = std::map<std::string, Matching>;

// Returns whether a tensor that the model does not have may be left out: a buffer, or a part of a
// head that is another task's.
bool IsOther(const Model& model, const std::string& name, const Wanted& wanted) {
  const std::string head = HeadOf(model, name);
  return IsKnownBuffer(name) || (!head.empty() && wanted.parts.count(head) == 0);
}

// Returns whether an adapter's tensors alone are wanted.
bool IsAdapterAlone(const Wanted& wanted) {
  return std::all_of(wanted.by_name.begin(), wanted.by_name.end(),
                     [](const auto& one) { return IsOfAdapter(one.first); });
}

// Returns what a refusal says of an adapter that the model does not have.
std::string HintOfAdapters(const Wanted& wanted) {
  if (IsAdapterAlone(wanted)) return ": is the adapter that of another model?";
  return ", an adapter's: want `lora` with that module, or a folder of `thinwire checkpoint export "
         "--merge`";
}

// Adds the tensors of the files to `matched`, by the model's names. A tensor that does not fit goes
// to `problems`, as does a second one for the same parameter with other values.
absl::Status AddMatches(const ModelFolder& folder, const Model& model, const Wanted& wanted,
                        Entries* matched, std::vector<std::string>* problems) {
  std::map<std::string, std::string> names;   // name in the files by name in the model
  std::string hint = HintOfAdapters(wanted);  // the first one tells what to do about all
  for (const auto& [name, entry] : folder.tensors()) {
    const std::string known = KnownAs(name, wanted);
    if (known.empty()) {
      if (!IsOther(model, name, wanted)) {
        problems->push_back(absl::StrCat(
            name, " is no ", IsAdapterAlone(wanted) ? "adapter" : "parameter", " of the model"));
        if (IsOfAdapter(name)) problems->back() += std::exchange(hint, "");
      }
      continue;
    }
    const std::string problem = Misshape(name, entry.place, *wanted.by_name.at(known));
    const auto [other, is_first] = names.insert({known, name});
    if (!problem.empty()) problems->push_back(problem);
    if (!problem.empty() || is_first) {
      matched->insert({known, {entry, {}}});
      continue;
    }
    if (folder.is_elsewhere()) {
      matched->at(known).equal.push_back(name);
      continue;
    }
    ASSIGN_OR_RETURN(const bool are_equal, folder.AreEqual(matched->at(known).entry, entry));
    if (are_equal) continue;
    problems->push_back(
        absl::StrCat(name, " and ", other->second, " differ, but are one parameter of the model"));
  }
  return absl::OkStatus();
}

// Does the same, and adds the parameters that are missing in the files to the problems.
absl::StatusOr<Entries> Matched(const ModelFolder& folder, const Model& model, const Wanted& wanted,
                                std::vector<std::string>* problems) {
  Entries matched;
  RETURN_IF_ERROR(AddMatches(folder, model, wanted, &matched, problems));
  for (const std::vector<FileTensor>& own : wanted.stages) {
    for (const FileTensor& tensor : own) {
      if (matched.count(tensor.name) > 0) continue;
      problems->push_back(absl::StrCat(tensor.name, " ", ShapeText(tensor.shape), " is missing"));
      matched[tensor.name];  // counts once, even if two stages want it
    }
  }
  return matched;
}

absl::Status Misfit(const std::string& dir, const std::vector<std::string>& problems) {
  const size_t named = std::min(problems.size(), kMostProblems);
  std::string text =
      absl::StrJoin(problems.begin(), problems.begin() + static_cast<long>(named), "; ");
  if (problems.size() > named) absl::StrAppend(&text, "; and ", problems.size() - named, " more");
  return absl::InvalidArgumentError(absl::StrCat(dir, ": does not fit the model: ", text));
}

// Returns the parts, in the model's order, that have no tensor in the folder.
std::vector<std::string> PartsWithoutTensors(const Model& model, const ModelFolder& folder) {
  std::set<std::string> there = {""};
  for (const auto& [name, entry] : folder.tensors()) there.insert(PartOf(model, name));
  std::vector<std::string> parts;
  for (const BlockSpec& block : model.blocks) {
    for (const ParameterSpec& parameter : Parameters(block)) {
      const std::string part = PartOf(model, parameter);
      if (there.insert(part).second) parts.push_back(part);
    }
  }
  return parts;
}

ModelFolder FolderOf(const ListInitialResponse& list) {
  std::vector<TensorPlace> places;
  for (const ListInitialResponse::Tensor& tensor : list.tensors()) {
    TensorPlace& place = places.emplace_back();
    place.name = tensor.name();
    place.dtype = tensor.dtype();
    place.shape = {tensor.shape().begin(), tensor.shape().end()};
    place.bytes = tensor.bytes();
  }
  return ModelFolder::Elsewhere(list.folder(), places);
}

std::set<std::string> NamesOf(const CheckpointBase& base) {
  std::set<std::string> names;
  for (const BaseTensor& tensor : base.tensors()) names.insert(tensor.name());
  return names;
}

bool IsOfBase(const ParameterSpec& parameter, const std::set<std::string>& names) {
  return parameter.role == ParameterSpec::Role::kFrozen &&
         names.count(FileTensors(parameter).front().name) > 0;
}

}  // namespace

absl::StatusOr<ModelShares> ModelShares::Of(const Experiment& experiment, ModelFolder folder) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  return Match(partition, IsAny, /*fresh=*/{}, std::move(folder));
}

absl::StatusOr<ModelShares> ModelShares::OfReplica(const Experiment& experiment,
                                                   ModelFolder folder) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  const auto is_there = [&folder](const ParameterSpec& parameter) {
    if (parameter.role != ParameterSpec::Role::kFrozen) return true;
    return folder.tensors().count(FileTensors(parameter).front().name) > 0;
  };
  return Match(partition, is_there, /*fresh=*/{}, std::move(folder));
}

absl::StatusOr<ModelShares> ModelShares::OfRemembered(const Experiment& experiment,
                                                      const std::string& buffer,
                                                      ModelFolder folder) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  ASSIGN_OR_RETURN(const OptimizerSpec optimizer, OptimizerFrom(experiment));
  const auto is_remembered = [&](const ParameterSpec& parameter) {
    if (!parameter.is_trained()) return false;
    if (buffer == kOuterMomentum) return !parameter.orthonormal;
    const std::vector<const char*> names = BufferNames(optimizer, parameter);
    return std::find(names.begin(), names.end(), buffer) != names.end();
  };
  return Match(partition, is_remembered, /*fresh=*/{}, std::move(folder));
}

absl::StatusOr<ModelShares> ModelShares::Initial(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  // A name in the hub is still there where stages read their own copies.
  ASSIGN_OR_RETURN(const std::string dir, Annotated(HubFolderOr(experiment.init()), "init"));
  ASSIGN_OR_RETURN(ModelFolder folder, Annotated(OpenWeights(dir), "init"));
  std::vector<std::string> fresh = PartsWithoutTensors(partition.model, folder);
  ASSIGN_OR_RETURN(ModelShares shares,
                   Annotated(Match(partition, IsAny, std::move(fresh), std::move(folder)), "init"));
  const std::string& adapter = experiment.lora().init();
  if (adapter.empty()) return shares;
  if (std::count(shares.fresh_.begin(), shares.fresh_.end(), kAdapters) == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "lora.init: ", adapter, ", want none: init: ", experiment.init(), " has adapters itself"));
  }
  ASSIGN_OR_RETURN(ModelShares own, Annotated(OfAdapter(partition, adapter), "lora.init"));
  shares.AddAdapter(std::move(own));
  return shares;
}

absl::StatusOr<ModelShares> ModelShares::InitialAdapter(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  return Annotated(OfAdapter(partition, experiment.lora().init()), "lora.init");
}

absl::StatusOr<ModelShares> ModelShares::OfAdapter(const Partition& partition,
                                                   const std::string& dir) {
  ASSIGN_OR_RETURN(ModelFolder folder, ModelFolder::OpenFiles(dir, {kAdapterFile}));
  return Match(partition, IsAdapters, /*fresh=*/{}, std::move(folder));
}

void ModelShares::AddAdapter(ModelShares adapter) {
  for (size_t i = 0; i < stages_.size(); ++i) {
    for (Share& share : adapter.stages_[i]) {
      share.folder = folders_.size();
      kept_[i].erase(std::remove(kept_[i].begin(), kept_[i].end(), share.name), kept_[i].end());
      stages_[i].push_back(std::move(share));
    }
  }
  folders_.push_back(std::move(adapter.folders_.front()));
  fresh_.erase(std::remove(fresh_.begin(), fresh_.end(), kAdapters), fresh_.end());
}

absl::StatusOr<ModelShares> ModelShares::Listed(const Experiment& experiment,
                                                const ListInitialResponse& list) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  ModelFolder folder = FolderOf(list);
  std::vector<std::string> fresh = PartsWithoutTensors(partition.model, folder);
  return Annotated(Match(partition, IsAny, std::move(fresh), std::move(folder)), "init");
}

absl::StatusOr<ModelShares> ModelShares::OfBase(const Experiment& experiment,
                                                const CheckpointBase& base,
                                                const ListInitialResponse& list) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  ModelFolder folder = FolderOf(list);
  RETURN_IF_ERROR(Annotated(KeepBase(base, &folder), "init"));
  const std::set<std::string> names = NamesOf(base);
  const auto is_of_base = [&](const ParameterSpec& one) { return IsOfBase(one, names); };
  return Annotated(Match(partition, is_of_base, /*fresh=*/{}, std::move(folder)), "init");
}

absl::StatusOr<ModelShares> ModelShares::BesideBase(const Experiment& experiment,
                                                    const CheckpointBase& base,
                                                    ModelFolder folder) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  const std::set<std::string> names = NamesOf(base);
  const auto is_beside = [&](const ParameterSpec& one) { return !IsOfBase(one, names); };
  return Match(partition, is_beside, /*fresh=*/{}, std::move(folder));
}

absl::StatusOr<ModelShares> ModelShares::Match(const Partition& partition,
                                               const IsWanted& is_wanted,
                                               std::vector<std::string> fresh, ModelFolder folder) {
  const Wanted wanted = WantedBy(partition, is_wanted, fresh);
  std::vector<std::string> problems;
  ASSIGN_OR_RETURN(const Entries matched, Matched(folder, partition.model, wanted, &problems));
  if (!problems.empty()) return Misfit(folder.dir(), problems);
  ModelShares shares(std::move(folder));
  shares.fresh_ = std::move(fresh);
  shares.kept_ = wanted.kept;
  for (const std::vector<FileTensor>& own : wanted.stages) {
    std::vector<Share>& stage = shares.stages_.emplace_back();
    for (const FileTensor& tensor : own) {
      const Matching& match = matched.at(tensor.name);
      stage.push_back(
          {tensor.name, match.entry, wanted.frozen.count(tensor.name) > 0, match.equal});
    }
  }
  return shares;
}

std::vector<std::vector<std::string>> ModelShares::names() const {
  std::vector<std::vector<std::string>> names;
  std::set<std::string> seen;
  for (const std::vector<Share>& stage : stages_) {
    std::vector<std::string>& own = names.emplace_back();
    for (const Share& share : stage) {
      if (seen.insert(share.name).second) own.push_back(share.name);
    }
  }
  return names;
}

absl::Status ModelShares::Write(const std::vector<Share>& shares, const StageClient::Sink& sink,
                                Digests* digests) const {
  Safetensors file;
  std::vector<uint64_t> bytes;
  for (const Share& share : shares) {
    const TensorPlace& place = share.entry.place;
    file.tensors.push_back({share.name, place.dtype, place.shape, {}});
    bytes.push_back(place.bytes);
  }
  std::string prefix = SafetensorsPrefix(file, bytes);
  for (size_t at = 0; at < prefix.size(); at += StageClient::kPieceBytes) {
    RETURN_IF_ERROR(sink(std::string_view(prefix).substr(at, StageClient::kPieceBytes)));
  }
  for (const Share& share : shares) {
    const ModelFolder& from = folders_[share.folder];
    if (digests == nullptr || !share.is_frozen) {
      RETURN_IF_ERROR(from.Read(share.entry, StageClient::kPieceBytes, sink));
      continue;
    }
    Sha256Stream sum;
    RETURN_IF_ERROR(from.Read(share.entry, StageClient::kPieceBytes, [&](std::string_view piece) {
      sum.Add(piece);
      return sink(piece);
    }));
    (*digests)[share.name] = sum.Digest();
  }
  return absl::OkStatus();
}

absl::Status ModelShares::Import(Fleet* fleet, CheckpointBase* base) const {
  std::vector<Digests> digests(stages_.size());
  RETURN_IF_ERROR(fleet->OnAll([&](StageClient& stage) {
    const auto i = static_cast<size_t>(stage.stage());
    Digests* const of_stage = base != nullptr && stage.carrier() == 0 ? &digests[i] : nullptr;
    return stage.ImportParameters(
        kept_[i], [&](const StageClient::Sink& sink) { return Write(stages_[i], sink, of_stage); });
  }));
  Digests all;  // a tied weight is at two stages
  for (const Digests& of_stage : digests) all.insert(of_stage.begin(), of_stage.end());
  for (const auto& [name, digest] : all) {
    BaseTensor* const tensor = base->add_tensors();
    tensor->set_name(name);
    tensor->set_sha256(digest);
  }
  return absl::OkStatus();
}

absl::Status ModelShares::ReadAtStages(Fleet* fleet, std::vector<Digests>* digests) const {
  digests->assign(static_cast<size_t>(fleet->size()), {});
  return fleet->OnAll([&](StageClient& stage) -> absl::Status {
    const auto i = static_cast<size_t>(stage.stage());
    ReadInitialRequest request;
    for (const Share& share : stages_[i]) {
      ReadInitialRequest::Tensor& tensor = *request.add_tensors();
      tensor.set_name(share.name);
      tensor.set_source(share.entry.place.name);
      *tensor.mutable_equal() = {share.equal.begin(), share.equal.end()};
    }
    *request.mutable_kept() = {kept_[i].begin(), kept_[i].end()};
    ASSIGN_OR_RETURN(const ReadInitialResponse response, stage.ReadInitial(std::move(request)));
    if (response.sha256_size() != static_cast<int>(stages_[i].size())) {
      return absl::InternalError(absl::StrCat(stage.Name(),
                                              ": ReadInitial: ", response.sha256_size(),
                                              " digests, want ", stages_[i].size()));
    }
    Digests& own = (*digests)[static_cast<size_t>(stage.server())];
    for (int t = 0; t < response.sha256_size(); ++t) {
      own[stages_[i][static_cast<size_t>(t)].name] = response.sha256(t);
    }
    return absl::OkStatus();
  });
}

const ModelShares::Share& ModelShares::ShareOf(const std::string& name) const {
  const Share* found = nullptr;
  for (const std::vector<Share>& stage : stages_) {
    for (const Share& share : stage) {
      if (share.name == name) found = &share;
    }
  }
  return *found;  // the caller has the name from here
}

bool ModelShares::IsFrozen(const std::string& name) const { return ShareOf(name).is_frozen; }

uint64_t ModelShares::BytesOf(const std::string& name) const {
  return ShareOf(name).entry.place.bytes;
}

absl::Status ModelShares::Restore(const StatePart& part, uint64_t step, int replicas,
                                  Fleet* fleet) const {
  return fleet->OnAll([&](StageClient& stage) {
    const auto i = static_cast<size_t>(stage.stage());
    // For example Muon's momentum, where the stage has no hidden matrix.
    if (stages_[i].empty()) return absl::OkStatus();
    const CarrierGrid grid = fleet->pipelines().GridOf(stage.stage());
    const ReplicaRange carried = grid.CarriedBy(grid.RowOf(stage.carrier()), replicas);
    if (part.has_replica() && !carried.has(static_cast<int>(part.replica()))) {
      return absl::OkStatus();
    }
    return stage.Restore(
        part, step, [&](const StageClient::Sink& sink) { return Write(stages_[i], sink); },
        part.tensors() == kModelTensors ? kept_[i] : std::vector<std::string>());
  });
}

}  // namespace thinwire
