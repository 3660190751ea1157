#include "config/tensor_parts.h"

#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/status.h"
#include "config/checks.h"
#include "config/direction.h"
#include "config/fields.h"
#include "config/specs.h"
#include "models/bottleneck.h"
#include "models/parts.h"

namespace thinwire {
namespace {

constexpr char kSection[] = "compression.sums";
constexpr char kHalf[] = "half";
constexpr uint32_t kMostParts = 64;

absl::Status Refuse(const std::string& field, const std::string& value, const std::string& want) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", value, ", want ", want));
}

int BlocksWithSums(const Model& model) {
  return static_cast<int>(
      std::count_if(model.blocks.begin(), model.blocks.end(),
                    [](const BlockSpec& block) { return !SumsOf(block).empty(); }));
}

// Returns the number of blocks whose sums are exact.
absl::StatusOr<int> ExactBlocks(const Model& model, const SumsConfig& sums) {
  const int blocks = BlocksWithSums(model);
  if (!sums.has_from_layer()) return 0;
  if (sums.from_layer() == kHalf) return blocks / 2;
  uint32_t from = 0;
  if (absl::SimpleAtoi(sums.from_layer(), &from) && from < static_cast<uint32_t>(blocks)) {
    return static_cast<int>(from);
  }
  return Refuse(absl::StrCat(kSection, ".from_layer"), sums.from_layer(),
                absl::StrCat(kHalf, " or 0 to ", blocks - 1, ", of the model's ", blocks,
                             " blocks with sums"));
}

// Checks what else the experiment has that cannot go with parts.
absl::Status CheckRestOfParts(const Model& model, const Experiment& e) {
  const std::string with = absl::StrCat(" with tensor.parts ", e.tensor().parts());
  if (e.pipeline().recompute() != Name(Recompute::kNone)) {
    return Refuse("pipeline.recompute", e.pipeline().recompute() + with,
                  "none: sums would be exchanged again");
  }
  if (!e.pipeline().slices().empty() || e.pipeline().schedule() == Name(ScheduleKind::kTeraPipe)) {
    return Refuse("pipeline.schedule", e.pipeline().schedule() + with,
                  "another: sums are over whole samples");
  }
  for (const BlockSpec& block : model.blocks) {
    if (block.name == kSums) {
      return Refuse("pipeline.cuts", kSums,
                    "another name for that block: what parts exchange has this one");
    }
  }
  return absl::OkStatus();
}

}  // namespace

int PartsOf(const Experiment& experiment) {
  return experiment.has_tensor() ? static_cast<int>(experiment.tensor().parts()) : 1;
}

bool HasSlicedPositions(const Experiment& experiment) {
  return PartsOf(experiment) > 1 && experiment.tensor().sequence();
}

CarrierGrid CarrierGrid::Carrying() const {
  CarrierGrid grid = *this;
  while (grid.Follows(grid.replicas - 1)) {
    grid.deal.pop_back();
    --grid.replicas;
  }
  return grid;
}

std::vector<int> Sharing(const CarrierGrid& here, int carrier, const CarrierGrid& there,
                         int replicas) {
  const ReplicaRange own = here.CarriedBy(here.RowOf(carrier), replicas);
  std::vector<int> sharing;
  for (int other = 0; other < there.count(); ++other) {
    const ReplicaRange of_other = there.CarriedBy(there.RowOf(other), replicas);
    if (std::max(own.first, of_other.first) < std::min(own.end, of_other.end)) {
      sharing.push_back(other);
    }
  }
  return sharing;
}

absl::StatusOr<CarrierGrid> GridOf(const Experiment& experiment, int carriers) {
  const int replicas = static_cast<int>(ReplicasOf(experiment)), parts = PartsOf(experiment);
  if (1 <= carriers && carriers <= replicas) return CarrierGrid{carriers, 1};
  const int places = carriers / replicas;
  if (carriers > 0 && carriers % replicas == 0 && places <= parts) {
    return CarrierGrid{replicas, places};
  }
  const std::string more =
      parts == 1 ? ""
                 : absl::StrCat(", or a multiple of them up to ", replicas * parts,
                                ", of which each carries some of the ", parts, " parts");
  return absl::InvalidArgumentError(absl::StrCat("--carriers ", carriers, ": want at most ",
                                                 replicas, ", the experiment's replicas.count",
                                                 more));
}

absl::Status CheckParts(const Experiment& e) {
  if (!e.has_tensor()) return absl::OkStatus();
  if (!e.tensor().has_parts()) return absl::InvalidArgumentError("tensor.parts: is required");
  return CheckValue(e.tensor().parts() >= 1 && e.tensor().parts() <= kMostParts, "tensor.parts",
                    e.tensor().parts(), absl::StrCat("1 to ", kMostParts));
}

absl::Status ResolveSums(const Model& model, Experiment* e) {
  CompressionConfig* const compression = e->mutable_compression();
  if (!e->has_tensor() && compression->has_sums()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kSection, ": without tensor.parts, want none: nothing is added up"));
  }
  if (PartsOf(*e) == 1) return absl::OkStatus();
  SumsConfig* const sums = compression->mutable_sums();
  if (!sums->has_from_layer()) sums->set_from_layer("0");
  e->mutable_tensor()->set_sequence(e->tensor().sequence());
  for (const bool gradient : {false, true}) {
    const std::string path = absl::StrCat(kSection, ".", DirectionName(gradient));
    const DirectionConfig& direction = DirectionIn(*sums, gradient);
    RETURN_IF_ERROR(CheckRest(path, *e, direction));
    RETURN_IF_ERROR(CheckRemembersNothing(path, direction, gradient, "sums over parts remember"));
  }
  RETURN_IF_ERROR(ExactBlocks(model, *sums).status());
  return CheckRestOfParts(model, *e);
}

absl::StatusOr<Model> WithBottlenecksOfSums(const Experiment& e, Model model) {
  const SumsConfig& sums = e.compression().sums();
  if (PartsOf(e) == 1 || !sums.has_bottleneck()) return model;
  BottleneckSpec spec;
  RETURN_IF_ERROR(FromName(sums.bottleneck().kind(), &spec.kind));
  if (spec.kind == BottleneckKind::kNone) return model;
  const std::string path = absl::StrCat(kSection, ".bottleneck");
  if (spec.kind != BottleneckKind::kLinear) {
    return Refuse(path + ".kind", sums.bottleneck().kind(),
                  "none or linear: codes of parts have to add up");
  }
  if (HasSlicedPositions(e)) {
    return Refuse(path + ".kind", sums.bottleneck().kind() + " with tensor.sequence",
                  "none: decoders have whole samples");
  }
  RETURN_IF_ERROR(ReadParameters(sums.bottleneck(), &spec));
  ASSIGN_OR_RETURN(const int first, ExactBlocks(model, sums));
  auto with_codes = WithCodesOfSums(std::move(model), spec.width, first);
  if (!with_codes.ok()) return Annotated(with_codes.status(), path);
  return with_codes;
}

absl::StatusOr<SumsSpec> SumsFrom(const Experiment& experiment, const Model& model) {
  SumsSpec spec;
  spec.parts = PartsOf(experiment);
  if (spec.parts == 1) return spec;
  const SumsConfig& sums = experiment.compression().sums();
  ASSIGN_OR_RETURN(spec.activations, DirectionFrom(sums.activations(), /*gradient=*/false));
  ASSIGN_OR_RETURN(spec.gradients, DirectionFrom(sums.gradients(), /*gradient=*/true));
  ASSIGN_OR_RETURN(spec.exact_blocks, ExactBlocks(model, sums));
  return spec;
}

}  // namespace thinwire
