#include <algorithm>
#include <utility>

#include "nn/cuda/column_sums.h"
#include "nn/cuda/columns.cuh"
#include "nn/cuda/parameter_update.cuh"
#include "nn/cuda/vectors.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {
namespace {

// The sums of one launch, each with its own blocks.
struct Joined {
  static constexpr int kMost = 80;

  TileSums from[kMost];
  float* to[kMost];
  int64_t first_block[kMost];
  int count;
};
static_assert(sizeof(Joined) <= 4096, "does not fit a launch");

// Adds the totals of columns over all tiles, each to its gradient.
__global__ void AddTotals(Joined joined) {
  const int of = ParameterOf(joined.first_block, joined.count, blockIdx.x);
  int64_t column = 0;
  double totals[1];
  const int64_t block = static_cast<int64_t>(blockIdx.x) - joined.first_block[of];
  if (!SumTiles(joined.from[of], block, &column, totals)) return;
  joined.to[of][column] += static_cast<float>(totals[0]);
}

}  // namespace

// If a gradient waits already, one of the two sums would be lost in a common launch; so that is
// submitted first.
Error ColumnSums::Add(const TileSumsShape& shape, std::unique_ptr<CudaScratch> tile_sums,
                      int64_t channels, std::initializer_list<float*> gradients) {
  for (float* const gradient : gradients) {
    const auto is_same = [gradient](const Waiting& sum) { return sum.gradient == gradient; };
    if (std::any_of(waiting_.begin(), waiting_.end(), is_same)) RETURN_ERROR(Submit());
  }
  const double* of_sum = tile_sums->as<double>();
  for (float* const gradient : gradients) {
    if (gradient != nullptr) {
      waiting_.push_back({of_sum, shape.tiles, shape.sums * shape.columns, channels, gradient});
    }
    of_sum += shape.columns;
  }
  memory_.push_back(std::move(tile_sums));
  bytes_ += shape.bytes();
  return joins_ && bytes_ < kMostWaiting ? Error{} : Submit();
}

void ColumnSums::Join() {
  waiting_.clear();
  memory_.clear();
  bytes_ = 0;
  joins_ = true;
}

Error ColumnSums::Finish() {
  joins_ = false;
  return Submit();
}

Error ColumnSums::Submit() {
  const std::vector<Waiting> waiting = std::exchange(waiting_, {});
  const std::vector<std::unique_ptr<CudaScratch>> memory = std::exchange(memory_, {});
  bytes_ = 0;
  for (size_t begin = 0; begin < waiting.size(); begin += Joined::kMost) {
    Joined joined{};
    joined.count = static_cast<int>(std::min<size_t>(waiting.size() - begin, Joined::kMost));
    int64_t blocks = 0;
    for (int i = 0; i < joined.count; ++i) {
      const Waiting& sum = waiting[begin + i];
      joined.from[i] = {sum.tile_sums, sum.tiles, sum.channels, sum.step};
      joined.to[i] = sum.gradient;
      joined.first_block[i] = blocks;
      blocks += (sum.channels + kColumnsOfBlock - 1) / kColumnsOfBlock;
    }
    RETURN_ERROR(Launch(device_, BlocksWith(1, blocks), dim3(kThreads), AddTotals, joined));
  }
  return Error{};
}

}  // namespace thinwire::cuda
