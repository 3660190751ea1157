#include "coordinator/run/initial.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/hub_cache.h"
#include "base/sha256.h"
#include "base/status.h"
#include "config/local_paths.h"
#include "coordinator/checkpoint/base.h"
#include "coordinator/run/model_shares.h"

namespace thinwire {
namespace {

using Digests = ModelShares::Digests;
using Listed = ListInitialResponse::Tensor;

// Returns "stage 1 (a:4700), /data/model".
std::string PlaceOf(const StageClient& stage, const ListInitialResponse& list) {
  return absl::StrCat(stage.Name(), ", ", list.folder());
}

std::string Spelled(const Listed* tensor) {
  if (tensor == nullptr) return "nothing";
  return absl::StrCat(tensor->dtype(), " [", absl::StrJoin(tensor->shape(), ", "), "]");
}

std::map<std::string, const Listed*> ByName(const ListInitialResponse& list) {
  std::map<std::string, const Listed*> tensors;
  for (const Listed& tensor : list.tensors()) tensors[tensor.name()] = &tensor;
  return tensors;
}

// Returns the first tensor that one of two folders lacks or has in another form, and both forms;
// empty if they are alike.
std::string Difference(const ListInitialResponse& first, const ListInitialResponse& other) {
  std::map<std::string, const Listed*> of_first = ByName(first), of_other = ByName(other);
  for (const auto& all : {of_first, of_other}) {
    for (const auto& [name, tensor] : all) {
      const std::string left = Spelled(of_first[name]), right = Spelled(of_other[name]);
      if (left != right) return absl::StrCat(name, " is ", left, " there, ", right, " here");
    }
  }
  if (first.config_sha256() == other.config_sha256()) return "";
  return absl::StrCat("config.json has SHA-256 ", first.config_sha256(), " there, ",
                      other.config_sha256(), " here");
}

// Lists the folders of all servers, which must be alike.
absl::StatusOr<std::vector<ListInitialResponse>> ListsOf(Fleet* fleet) {
  std::vector<ListInitialResponse> lists(static_cast<size_t>(fleet->size()));
  RETURN_IF_ERROR(fleet->OnAll([&lists](StageClient& stage) -> absl::Status {
    ASSIGN_OR_RETURN(lists[static_cast<size_t>(stage.server())], stage.ListInitial());
    return absl::OkStatus();
  }));
  for (int i = 1; i < fleet->size(); ++i) {
    const ListInitialResponse& list = lists[static_cast<size_t>(i)];
    const std::string difference = Difference(lists[0], list);
    if (difference.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("init: ", PlaceOf(fleet->server(i), list), ": is another model than that of ",
                     PlaceOf(fleet->server(0), lists[0]), ": ", difference));
  }
  return lists;
}

// Returns the digests of all tensors. Those that several servers have read must be equal.
absl::StatusOr<Digests> Agreed(const std::vector<Digests>& by_server,
                               const std::vector<ListInitialResponse>& lists, Fleet* fleet) {
  std::map<std::string, int> readers;  // the first of each tensor
  Digests all;
  for (int i = 0; i < fleet->size(); ++i) {
    for (const auto& [name, digest] : by_server[static_cast<size_t>(i)]) {
      const int reader = readers.insert({name, i}).first->second;
      if (all.insert({name, digest}).first->second == digest) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("init: ", name, " has SHA-256 ", all[name], " at ",
                       PlaceOf(fleet->server(reader), lists[static_cast<size_t>(reader)]), ", but ",
                       digest, " at ", PlaceOf(fleet->server(i), lists[static_cast<size_t>(i)]),
                       ": want the same model at all stages"));
    }
  }
  return all;
}

InitialRecord RecordOf(const Experiment& experiment, const ModelShares& shares,
                       const Digests& digests) {
  InitialRecord record;
  record.set_folder(experiment.init());
  record.set_tensors(digests.size());
  uint64_t bytes = 0;
  std::string lines;
  for (const auto& [name, digest] : digests) {
    bytes += shares.BytesOf(name);
    absl::StrAppend(&lines, name, " ", digest, "\n");
  }
  record.set_bytes(bytes);
  record.set_sha256(Sha256(lines));
  return record;
}

bool KeepsBase(const Experiment& experiment) {
  return experiment.freeze_size() > 0 || experiment.has_lora();
}

// Checks that the config.json which has filled in the model is that of the stages.
absl::Status CheckConfigHere(const Experiment& experiment, const ListInitialResponse& list,
                             Fleet* fleet) {
  const absl::StatusOr<std::string> found = HubFolderOr(experiment.init());
  const std::string folder = found.ok() ? *found : experiment.init();
  const absl::StatusOr<std::string> here = DigestOfConfig(folder);
  if (!here.ok() || here->empty() || *here == list.config_sha256()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "init: config.json has SHA-256 ", *here, " in ", folder, " on this machine, ",
      list.config_sha256(), " at ", PlaceOf(fleet->server(0), list), ": want the same model"));
}

// Sends the adapter that the run goes on with, of which stages have no copies.
absl::Status SendAdapter(const Experiment& experiment, Fleet* fleet, Initial* initial) {
  ASSIGN_OR_RETURN(const ModelShares adapter, ModelShares::InitialAdapter(experiment));
  std::vector<std::string>& fresh = initial->fresh;
  if (std::count(fresh.begin(), fresh.end(), kAdapters) == 0) {
    return absl::InvalidArgumentError(absl::StrCat("lora.init: ", experiment.lora().init(),
                                                   ", want none: init: ", experiment.init(),
                                                   " has adapters itself"));
  }
  fresh.erase(std::remove(fresh.begin(), fresh.end(), kAdapters), fresh.end());
  return adapter.Import(fleet);
}

absl::StatusOr<Initial> ReadAll(const Experiment& experiment, Fleet* fleet) {
  ASSIGN_OR_RETURN(const std::vector<ListInitialResponse> lists, ListsOf(fleet));
  RETURN_IF_ERROR(CheckConfigHere(experiment, lists[0], fleet));
  ASSIGN_OR_RETURN(const ModelShares shares, ModelShares::Listed(experiment, lists[0]));
  std::vector<Digests> by_server;
  RETURN_IF_ERROR(shares.ReadAtStages(fleet, &by_server));
  ASSIGN_OR_RETURN(const Digests digests, Agreed(by_server, lists, fleet));
  Initial initial;
  initial.record = RecordOf(experiment, shares, digests);
  initial.fresh = shares.fresh();
  if (experiment.lora().has_init()) RETURN_IF_ERROR(SendAdapter(experiment, fleet, &initial));
  if (!KeepsBase(experiment)) return initial;
  initial.base.emplace();
  initial.base->set_at(kAtStages);
  initial.base->set_config_sha256(lists[0].config_sha256());
  for (const auto& [name, digest] : digests) {
    if (!shares.IsFrozen(name)) continue;
    BaseTensor* const tensor = initial.base->add_tensors();
    tensor->set_name(name);
    tensor->set_sha256(digest);
  }
  return initial;
}

absl::StatusOr<Initial> SendAll(const Experiment& experiment, Fleet* fleet) {
  ASSIGN_OR_RETURN(const ModelShares shares, ModelShares::Initial(experiment));
  Initial initial;
  initial.fresh = shares.fresh();
  if (KeepsBase(experiment)) {
    initial.base.emplace();
    initial.base->set_at(kAtCoordinator);
    ASSIGN_OR_RETURN(*initial.base->mutable_config_sha256(), DigestOfConfig(experiment.init()));
  }
  RETURN_IF_ERROR(shares.Import(fleet, initial.base ? &*initial.base : nullptr));
  return initial;
}

}  // namespace

absl::StatusOr<Initial> GiveInitial(const Experiment& experiment, Fleet* fleet) {
  ASSIGN_OR_RETURN(Initial initial, StagesReadInit(experiment) ? ReadAll(experiment, fleet)
                                                               : SendAll(experiment, fleet));
  if (initial.base) initial.base->set_init(experiment.init());
  if (initial.base && initial.base->tensors().empty()) initial.base.reset();
  return initial;
}

absl::Status ReadBaseAtStages(const Experiment& experiment, const CheckpointBase& base,
                              Fleet* fleet) {
  ASSIGN_OR_RETURN(const std::vector<ListInitialResponse> lists, ListsOf(fleet));
  ASSIGN_OR_RETURN(const ModelShares shares, ModelShares::OfBase(experiment, base, lists[0]));
  std::vector<Digests> by_server;
  RETURN_IF_ERROR(shares.ReadAtStages(fleet, &by_server));
  Digests wanted;
  for (const BaseTensor& tensor : base.tensors()) wanted[tensor.name()] = tensor.sha256();
  for (int i = 0; i < fleet->size(); ++i) {
    for (const auto& [name, digest] : by_server[static_cast<size_t>(i)]) {
      if (digest == wanted[name]) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "init: ", PlaceOf(fleet->server(i), lists[static_cast<size_t>(i)]), ": ", name,
          " has SHA-256 ", digest, ", want ", wanted[name], ", as the run began with it"));
    }
  }
  return absl::OkStatus();
}

}  // namespace thinwire
