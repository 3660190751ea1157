#include "models/sliced_positions.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "models/parts.h"
#include "models/zoo.h"

namespace thinwire {
namespace {

bool WorkOnSlices(const std::vector<LayerSpec>& layers);

bool WorksOnSlices(const LayerSpec& layer) {
  switch (layer.kind) {
    case LayerKind::kLayerNorm:
    case LayerKind::kRmsNorm:
    case LayerKind::kDropout:
    case LayerKind::kSum:
      return layer.in.rank() == 3;
    case LayerKind::kResidual:
      return WorkOnSlices(layer.body) && WorkOnSlices(layer.shortcut);
    default:
      return false;
  }
}

bool WorkOnSlices(const std::vector<LayerSpec>& layers) {
  return std::all_of(layers.begin(), layers.end(), WorksOnSlices);
}

bool HasSum(const LayerSpec& layer) {
  return layer.kind == LayerKind::kSum ||
         std::any_of(layer.body.begin(), layer.body.end(), HasSum) ||
         std::any_of(layer.shortcut.begin(), layer.shortcut.end(), HasSum);
}

void SetSlices(const PositionSlices& slices, LayerSpec* layer) {
  layer->slices = slices;
  if (layer->kind == LayerKind::kSum) return;
  for (LayerSpec& inner : layer->body) SetSlices(slices, &inner);
  for (LayerSpec& inner : layer->shortcut) SetSlices(slices, &inner);
}

// Slices the layers between two cuts.
class SegmentSlicer {
 public:
  explicit SegmentSlicer(int slices) : count_(slices) {}

  bool has_sliced() const { return has_sliced_; }

  absl::Status Slice(std::vector<BlockSpec>* blocks, const BlockRange& range) {
    for (int i = range.first; i < range.last; ++i) {
      BlockSpec& block = (*blocks)[i];
      if (SumsOf(block).empty()) {
        EndRun(block);
        continue;
      }
      for (size_t layer = 0; layer < block.layers.size(); ++layer) {
        if (!WorksOnSlices(block.layers[layer])) {
          layer += EndRun(block);
          continue;
        }
        RETURN_IF_ERROR(Add(&block, layer));
      }
    }
    EndRun((*blocks)[range.first]);
    return absl::OkStatus();
  }

 private:
  // Place of a layer.
  struct Place {
    BlockSpec* block = nullptr;
    size_t layer = 0;
  };

  absl::Status Add(BlockSpec* block, size_t layer) {
    const int64_t positions = block->layers[layer].in[1];
    if (positions < count_) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor.sequence: block ", block->name, " has ", positions,
                       " positions, want at least ", count_, ", one for each part"));
    }
    run_.push_back({block, layer});
    return absl::OkStatus();
  }

  // Slices the layers of the run, unless it has no sums. Returns the number of layers that it puts
  // into the block `at`.
  size_t EndRun(const BlockSpec& at) {
    const std::vector<Place> run = std::exchange(run_, {});
    const auto has_sum = [](const Place& place) {
      return HasSum(place.block->layers[place.layer]);
    };
    if (std::none_of(run.begin(), run.end(), has_sum)) return 0;
    has_sliced_ = true;
    PositionSlices slices;
    slices.count = slices.end = count_;
    slices.positions = run.front().block->layers[run.front().layer].in[1];
    for (const Place& place : run) SetSlices(slices, &place.block->layers[place.layer]);
    Insert(LayerKind::kToWhole, slices, run.back().block, run.back().layer + 1);
    Insert(LayerKind::kToSlices, slices, run.front().block, run.front().layer);
    return static_cast<size_t>(run.front().block == &at) +
           static_cast<size_t>(run.back().block == &at);
  }

  static void Insert(LayerKind kind, const PositionSlices& slices, BlockSpec* block, size_t place) {
    LayerSpec layer = NewLayer(kind, absl::StrCat(block->name, ".", Name(kind), ".", place));
    layer.slices = slices;
    block->layers.insert(block->layers.begin() + static_cast<std::ptrdiff_t>(place),
                         std::move(layer));
  }

  const int count_;
  std::vector<Place> run_;
  bool has_sliced_ = false;
};

}  // namespace

absl::StatusOr<Model> WithSlicedPositions(Model model, const std::vector<Cut>& cuts, int slices) {
  SegmentSlicer slicer(slices);
  for (int segment = 0; segment <= static_cast<int>(cuts.size()); ++segment) {
    RETURN_IF_ERROR(slicer.Slice(&model.blocks, SegmentBlocks(model, cuts, segment)));
  }
  if (!slicer.has_sliced()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor.sequence: true, want false: model ", model.name,
                     " has no sums over parts between norms, dropouts and residual additions"));
  }
  return CustomModel(std::move(model.name), std::move(model.blocks), model.input, model.classes);
}

}  // namespace thinwire
