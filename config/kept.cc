#include "config/kept.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/byte_size.h"
#include "base/status.h"
#include "config/checks.h"
#include "config/devices.h"
#include "config/sections.h"
#include "config/specs.h"
#include "config/stash.h"
#include "config/swap.h"
#include "config/tensor_parts.h"
#include "models/cost.h"

namespace thinwire {
namespace {

constexpr char kMemoryField[] = "pipeline.memory";
constexpr char kAutoMemory[] = "auto";

absl::Status RefuseOfKeep(const std::string& block, Keeping keeping, const std::string& want) {
  return absl::InvalidArgumentError(
      absl::StrCat("pipeline.keep.", block, ": ", Name(keeping), ", want ", want));
}

// Checks that the block can do it, and that it is said how.
absl::Status CheckKeeping(const Experiment& e, const BlockSpec& block, Keeping keeping) {
  if (keeping == Keeping::kKeep) return absl::OkStatus();
  if (PartsOf(e) > 1) {
    return RefuseOfKeep(block.name, keeping,
                        absl::StrCat("keep with tensor.parts ", e.tensor().parts()));
  }
  if (keeping == Keeping::kRecompute && !WorthRecomputing(block)) {
    return RefuseOfKeep(block.name, keeping, "another: it keeps no more than its input");
  }
  if (keeping == Keeping::kStash) {
    ASSIGN_OR_RETURN(const auto stash, StashFrom(e));
    if (!stash) return RefuseOfKeep(block.name, keeping, "pipeline.stash with it, for the codec");
  }
  if (keeping == Keeping::kSwap && !Swaps(e)) {
    return RefuseOfKeep(block.name, keeping, "pipeline.swap with it: host or disk");
  }
  return absl::OkStatus();
}

const BlockSpec* FindBlock(const Model& model, const std::string& name) {
  for (const BlockSpec& block : model.blocks) {
    if (block.name == name) return &block;
  }
  return nullptr;
}

absl::Status CheckEntryOfKeep(const Experiment& e, const Model& model, const std::string& name,
                              const std::string& value) {
  const BlockSpec* const block = FindBlock(model, name);
  if (block == nullptr) {
    std::vector<std::string> known;
    for (const BlockSpec& one : model.blocks) known.push_back(one.name);
    return UnknownName("pipeline.keep", "block", name, known);
  }
  Keeping keeping{};
  RETURN_IF_ERROR(
      CheckName(absl::StrCat("pipeline.keep.", name), "choice", value, NamesOf(AllOf<Keeping>())));
  RETURN_IF_ERROR(FromName(value, &keeping));
  return CheckKeeping(e, *block, keeping);
}

// Checks that the planner may choose, and that `auto` means something.
absl::Status CheckLimit(const Experiment& e, const MemoryLimit& limit) {
  const std::string& memory = e.pipeline().memory();
  if (PartsOf(e) > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        kMemoryField, ": ", memory, " with tensor.parts ", e.tensor().parts(), ", want none"));
  }
  if (!limit.bytes && HasOpenMembership(e)) {
    return absl::InvalidArgumentError(
        absl::StrCat(kMemoryField, ": ", kAutoMemory,
                     " with membership.open, want a size, as 12GiB: what machines have left is ",
                     "another when they come and go"));
  }
  for (int stage = 0; !limit.bytes && stage < static_cast<int>(e.pipeline().stages()); ++stage) {
    ASSIGN_OR_RETURN(const std::string device, DeviceOf(e, stage));
    if (device.rfind("cuda", 0) != 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(kMemoryField, ": ", kAutoMemory, " with stage ",
                                                   stage, " on ", device,
                                                   ", want a size, as 12GiB"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckKept(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const auto limit, MemoryLimitFrom(experiment));
  if (limit) RETURN_IF_ERROR(CheckLimit(experiment, *limit));
  if (experiment.pipeline().keep().empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  const std::map<std::string, std::string> keep(experiment.pipeline().keep().begin(),
                                                experiment.pipeline().keep().end());
  for (const auto& [name, value] : keep) {
    RETURN_IF_ERROR(CheckEntryOfKeep(experiment, partition.model, name, value));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<BlockKeeping>> KeepingsFrom(const Experiment& experiment,
                                                       const Model& model) {
  ASSIGN_OR_RETURN(const Recompute recompute, RecomputeFrom(experiment));
  ASSIGN_OR_RETURN(const auto stash, StashFrom(experiment));
  std::vector<BlockKeeping> keepings;
  for (const BlockSpec& block : model.blocks) {
    const auto own = experiment.pipeline().keep().find(block.name);
    BlockKeeping& keeping = keepings.emplace_back();
    if (own == experiment.pipeline().keep().end()) {
      keeping.recompute = recompute == Recompute::kBlocks && WorthRecomputing(block);
      keeping.stash = stash.has_value();
      keeping.swap = Swaps(experiment);
      continue;
    }
    Keeping named{};
    RETURN_IF_ERROR(FromName(own->second, &named));
    keeping = Only(named);
  }
  return keepings;
}

void KeepLeast(Experiment* experiment) {
  PipelineConfig* const pipeline = experiment->mutable_pipeline();
  pipeline->clear_swap();
  if (!pipeline->has_memory()) return;
  pipeline->clear_memory();
  pipeline->clear_keep();
  pipeline->set_recompute(std::string(Name(Recompute::kBlocks)));
}

bool Swaps(const Experiment& experiment) {
  const absl::StatusOr<SwapTo> to = SwapFrom(experiment);
  return to.ok() && *to != SwapTo::kDevice;
}

absl::StatusOr<std::optional<MemoryLimit>> MemoryLimitFrom(const Experiment& experiment) {
  const PipelineConfig& pipeline = experiment.pipeline();
  if (!pipeline.has_memory()) return std::nullopt;
  MemoryLimit limit;
  if (pipeline.memory() == kAutoMemory) return limit;
  const absl::StatusOr<uint64_t> bytes = ParseByteSize(pipeline.memory());
  if (!bytes.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kMemoryField, ": ", bytes.status().message(), ", or ", kAutoMemory));
  }
  limit.bytes = *bytes;
  return limit;
}

}  // namespace thinwire
