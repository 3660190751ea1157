#include "models/partition.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/text.h"
#include "models/frozen.h"

namespace thinwire {
namespace {

// Returns the last block that `name` stands for, or -1.
int BlockBefore(const Model& model, const std::string& name) {
  for (int i = static_cast<int>(model.blocks.size()) - 1; i >= 0; --i) {
    const std::string& block = model.blocks[i].name;
    if (block == name || GroupOf(block) == name) return i;
  }
  return -1;
}

// Returns every name that a cut may have: groups and blocks in model order, without the last.
std::vector<std::string> CutNames(const Model& model) {
  std::vector<std::string> names;
  const int last = static_cast<int>(model.blocks.size()) - 1;
  for (int i = 0; i < last; ++i) {
    const std::string& block = model.blocks[i].name;
    const std::string group = GroupOf(block);
    const bool known = std::find(names.begin(), names.end(), group) != names.end();
    if (!known && BlockBefore(model, group) < last) names.push_back(group);
    if (group != block) names.push_back(block);
  }
  return names;
}

absl::StatusOr<Cut> NamedCut(const Model& model, const std::string& name) {
  const int block = BlockBefore(model, name);
  if (block < 0) {
    const std::vector<std::string> names = CutNames(model);
    return absl::InvalidArgumentError(absl::StrCat("model ", model.name, " has no cut '", name,
                                                   "': did you mean ", NearestName(name, names),
                                                   "? There are ", absl::StrJoin(names, ", ")));
  }
  if (block + 1 == static_cast<int>(model.blocks.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("cut '", name, "' is the end of model ", model.name, ": nothing follows it"));
  }
  return Cut{name, block};
}

// Splits a row of `items` into `parts` spans of at least one item so that the costliest span is as
// cheap as possible. Of all such splits it takes the one with the earliest starts. cost(first,
// last) is the cost of the span [first, last) and must not depend on the other spans. Returns the
// first item of each span.
std::vector<int> BalancedSpans(int items, int parts,
                               const std::function<double(int first, int last)>& cost) {
  assert(1 <= parts && parts <= items);
  // rest[k][i] is the least possible cost of the costliest of k spans over the items [i, items).
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> rest(parts + 1, std::vector<double>(items + 1, kNever));
  rest[0][items] = 0;
  for (int k = 1; k <= parts; ++k) {
    for (int i = 0; i < items; ++i) {
      for (int j = i + 1; j <= items; ++j) {
        rest[k][i] = std::min(rest[k][i], std::max(cost(i, j), rest[k - 1][j]));
      }
    }
  }
  // Takes the earliest next start after which the rest can still be split as cheaply.
  std::vector<int> starts = {0};
  for (int k = parts - 1; k > 0; --k) {
    int next = starts.back() + 1;
    while (std::max(cost(starts.back(), next), rest[k][next]) > rest[parts][0]) ++next;
    starts.push_back(next);
  }
  return starts;
}

// Returns the FLOPs of a sample's forward and backward pass.
double Flops(const Model& model, int first, int last) {
  double flops = 0;
  for (int i = first; i < last; ++i) {
    flops += ForwardFlops(model.blocks[i]) + BackwardFlops(model, i);
  }
  return flops;
}

}  // namespace

std::string GroupOf(const std::string& block) { return block.substr(0, block.find('.')); }

absl::StatusOr<std::vector<Cut>> NamedCuts(const Model& model,
                                           const std::vector<std::string>& names) {
  std::vector<Cut> cuts;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(Cut cut, NamedCut(model, name));
    if (!cuts.empty() && cut.block <= cuts.back().block) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cut '", name, "' ",
          cut.block == cuts.back().block ? "is the same as '" : "stands in the model before '",
          cuts.back().name, "': want every cut once, in model order"));
    }
    cuts.push_back(std::move(cut));
  }
  return cuts;
}

absl::StatusOr<std::vector<Cut>> BalancedCuts(const Model& model, int count,
                                              double flops_per_byte) {
  const int blocks = static_cast<int>(model.blocks.size());
  if (count < 0 || count >= blocks) {
    return absl::InvalidArgumentError(absl::StrCat(count, " cuts, but model ", model.name, " has ",
                                                   blocks, " blocks: want 0 to ", blocks - 1));
  }
  // Counts the activation sent at the end and the gradient sent at the start.
  const int first_trained = FirstTrainedBlock(model);
  const auto sent_bytes = [&model, blocks, first_trained](int first, int last) {
    int64_t elements = 0;
    if (first > first_trained) elements += model.blocks[first].in.elements();
    if (last < blocks) elements += model.blocks[last - 1].out.elements();
    return 4.0 * static_cast<double>(elements);
  };
  const std::vector<int> starts = BalancedSpans(blocks, count + 1, [&](int first, int last) {
    return Flops(model, first, last) + flops_per_byte * sent_bytes(first, last);
  });
  std::vector<Cut> cuts;
  for (size_t i = 1; i < starts.size(); ++i) {
    cuts.push_back({model.blocks[starts[i] - 1].name, starts[i] - 1});
  }
  return cuts;
}

int Placement::ChunkOf(int segment) const {
  const auto behind =
      std::upper_bound(chunks.begin(), chunks.end(), segment,
                       [](int wanted, const SegmentRange& chunk) { return wanted < chunk.first; });
  return static_cast<int>(behind - chunks.begin()) - 1;
}

absl::StatusOr<Placement> BalancedPlacement(const Model& model, const std::vector<Cut>& cuts,
                                            int stages) {
  const int segments = static_cast<int>(cuts.size()) + 1;
  if (stages < 1 || stages > segments) {
    return absl::InvalidArgumentError(absl::StrCat("stages is ", stages, ", but ", cuts.size(),
                                                   " cuts make ", segments, " segments: want 1 to ",
                                                   segments));
  }
  const std::vector<int> starts = BalancedSpans(segments, stages, [&](int first, int last) {
    const BlockRange blocks = SegmentBlocks(model, cuts, SegmentRange{first, last});
    return Flops(model, blocks.first, blocks.last);
  });
  Placement placement;
  placement.stages = stages;
  for (size_t i = 0; i < starts.size(); ++i) {
    placement.chunks.push_back({starts[i], i + 1 < starts.size() ? starts[i + 1] : segments});
  }
  return placement;
}

absl::StatusOr<Placement> InterleavedPlacement(const std::vector<Cut>& cuts, int stages) {
  const int segments = static_cast<int>(cuts.size()) + 1;
  if (stages < 1 || segments % stages != 0 || segments < 2 * stages) {
    return absl::InvalidArgumentError(absl::StrCat(
        "stages is ", stages, ", but ", cuts.size(), " cuts make ", segments,
        " segments: want twice, three times ... as many segments as stages to take turns on them"));
  }
  Placement placement;
  placement.stages = stages;
  for (int i = 0; i < segments; ++i) placement.chunks.push_back({i, i + 1});
  return placement;
}

BlockRange SegmentBlocks(const Model& model, const std::vector<Cut>& cuts, int segment) {
  assert(0 <= segment && segment <= static_cast<int>(cuts.size()));
  const bool is_last = segment == static_cast<int>(cuts.size());
  return {segment == 0 ? 0 : cuts[segment - 1].block + 1,
          is_last ? static_cast<int>(model.blocks.size()) : cuts[segment].block + 1};
}

BlockRange SegmentBlocks(const Model& model, const std::vector<Cut>& cuts,
                         const SegmentRange& segments) {
  return {SegmentBlocks(model, cuts, segments.first).first,
          SegmentBlocks(model, cuts, segments.end - 1).last};
}

std::vector<int> StageBlocks(const Model& model, const std::vector<Cut>& cuts,
                             const Placement& placement, int stage) {
  std::vector<int> blocks;
  for (int chunk = 0; chunk < placement.chunks_per_stage(); ++chunk) {
    const BlockRange range = SegmentBlocks(model, cuts, placement.At(stage, chunk));
    for (int block = range.first; block < range.last; ++block) blocks.push_back(block);
  }
  return blocks;
}

}  // namespace thinwire
