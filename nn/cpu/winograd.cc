#include <oneapi/dnnl/dnnl_debug.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <utility>
#include <vector>

#include "nn/cpu/kernels.h"
#include "nn/cpu/parallel.h"
#include "nn/cpu/winograd_tiles.h"

namespace thinwire::cpu {
namespace {

// Floats that a thread works on at once, to fit a core's cache. With fewer tiles than these
// minimums, filters would be read, or their gradients written, too often.
constexpr int64_t kWorkFloats = 1 << 17, kLeastTiles = 64, kLeastGradientTiles = 48;

// Divides tiles into blocks of nearly equal size, equally many per thread.
class Blocks {
 public:
  // `channels` is the number of channels of the values in work.
  Blocks(int64_t tiles, int64_t threads, int64_t least, int64_t channels)
      : tiles_(tiles), threads_(threads) {
    const int64_t most = std::max(least, kWorkFloats / (kPoints * channels));
    each_ = (tiles + threads * most - 1) / (threads * most);
  }
  int64_t most() const { return (tiles_ + threads_ * each_ - 1) / (threads_ * each_); }

  // Calls body(thread, i, first, count) for the thread's i-th block, in order.
  template <typename Body>
  void ForEach(const Body& body) const {
    ParallelFor(threads_, threads_, [&](int64_t thread) {
      for (int64_t i = 0; i < each_; ++i) {
        const int64_t block = thread * each_ + i, first = tiles_ * block / (threads_ * each_);
        body(thread, i, first, tiles_ * (block + 1) / (threads_ * each_) - first);
      }
    });
  }

 private:
  const int64_t tiles_, threads_;
  int64_t each_;
};

class WinogradConv2d final : public Conv2d {
 public:
  WinogradConv2d(OneDnn* onednn, const Conv2dSpec& spec)
      : onednn_(onednn),
        in_(spec.in_channels),
        out_(spec.out_channels),
        grid_{spec.height, spec.width} {}

  Error LoadWeights(const float* weights, const float* bias) override {
    assert(bias == nullptr);
    static_cast<void>(bias);
    weights_ = weights;
    return Guarded(onednn_, "conv2d", [&] {
      for (const bool turned : {false, true}) {
        Filters& filters = turned ? turned_ : forward_;
        filters.fresh = false;
        if (std::exchange(filters.used, false)) Transform(turned, &filters);
      }
    });
  }

  NarrowCopies narrow_copies() const override { return {}; }

  Error Forward(const TensorView& x, const TensorView& y) override {
    return Guarded(onednn_, "conv2d", [&] { Convolve(x, Fresh(/*turned=*/false), y); });
  }

  Error BackwardData(const TensorView& dy, const TensorView& dx) override {
    return Guarded(onednn_, "conv2d", [&] { Convolve(dy, Fresh(/*turned=*/true), dx); });
  }

  Error BackwardWeights(const TensorView& x, const TensorView& dy, float* weights_gradient,
                        float* bias_gradient) override {
    assert(bias_gradient == nullptr);
    static_cast<void>(bias_gradient);
    return Guarded(onednn_, "conv2d", [&] {
      // A thread's own filter gradients are large compared with the values of few tiles. Then
      // threads divide the filters instead of the tiles.
      if (Tiles(x) * (in_ + out_) < 2 * onednn_->threads * in_ * out_) {
        AddGradientsByParts(x, dy, weights_gradient);
      } else {
        AddGradientsByTiles(x, dy, weights_gradient);
      }
    });
  }

 private:
  struct Filters {
    std::vector<float> values;
    bool fresh = false;  // has the weights that were loaded last
    bool used = false;   // has been used since then
  };

  int64_t Tiles(const TensorView& images) const { return images.dims[0] * grid_.per_image(); }

  // Returns the transformed filters. Those used since the last load are transformed in LoadWeights,
  // so that no pass waits for it; others here on demand.
  const float* Fresh(bool turned) {
    Filters& filters = turned ? turned_ : forward_;
    if (!filters.fresh) Transform(turned, &filters);
    filters.used = true;
    return filters.values.data();
  }

  void Transform(bool turned, Filters* filters) {
    assert(weights_ != nullptr);
    const int64_t rows = turned ? out_ : in_, columns = turned ? in_ : out_;
    filters->values.resize(SpectrumFloats(rows, columns));
    ParallelRange(onednn_->threads, rows, 2, [&](int64_t begin, int64_t end) {
      TransformFilters(weights_, in_, out_, turned, begin, end, filters->values.data());
    });
    filters->fresh = true;
  }

  float* Work(int64_t floats) {
    return static_cast<float*>(onednn_->scratchpad.Get(floats * sizeof(float)));
  }
  float* Gradients(int64_t floats) {
    return static_cast<float*>(onednn_->gradients.Get(floats * sizeof(float)));
  }

  void Convolve(const TensorView& x, const float* filters, const TensorView& y) {
    const Blocks blocks(Tiles(x), onednn_->threads, kLeastTiles, in_ + out_);
    const int64_t floats = ConvolutionFloats(blocks.most(), x.dims[3], y.dims[3]);
    float* work = Work(onednn_->threads * floats);
    blocks.ForEach([&](int64_t thread, int64_t, int64_t first, int64_t count) {
      ConvolveTiles(x, filters, y, {grid_, first, count}, work + thread * floats);
    });
  }

  // Each thread sums what its tiles contribute to all filters.
  void AddGradientsByTiles(const TensorView& x, const TensorView& dy, float* sums) {
    const int64_t threads = onednn_->threads;
    const Blocks blocks(Tiles(x), threads, kLeastGradientTiles, in_ + out_);
    const int64_t floats = GradientFloats(blocks.most(), in_, out_),
                  all = SpectrumFloats(out_, in_);
    float* work = Work(threads * floats);
    float* gradients = Gradients(threads * all);
    blocks.ForEach([&](int64_t thread, int64_t i, int64_t first, int64_t count) {
      float* values = work + thread * floats;
      ReadTiles(x, dy, {grid_, first, count}, 0, count, values);
      MultiplyTiles(values, count, in_, out_, /*adds=*/i > 0, gradients + thread * all);
    });
    ParallelFor(threads, out_, [&](int64_t channel) {
      for (int64_t t = 0; t < threads; ++t)
        AddGradients(gradients + t * all, in_, out_, channel, sums);
    });
  }

  // Each thread sums what all tiles contribute to its filters.
  void AddGradientsByParts(const TensorView& x, const TensorView& dy, float* sums) {
    const int64_t threads = onednn_->threads, tiles = Tiles(x);
    float* values = Work(GradientFloats(tiles, in_, out_));
    ParallelRange(threads, tiles, 2, [&](int64_t begin, int64_t end) {
      ReadTiles(x, dy, {grid_, 0, tiles}, begin, end, values);
    });
    const int64_t floats = GradientPartFloats(), parts = GradientParts(in_, out_);
    float* gradients = Gradients(threads * floats);
    ParallelFor(threads, threads, [&](int64_t t) {
      for (int64_t part = parts * t / threads; part < parts * (t + 1) / threads; ++part) {
        AddGradientsOfPart(values, tiles, in_, out_, part, gradients + t * floats, sums);
      }
    });
  }

  OneDnn* const onednn_;
  const int64_t in_, out_;
  const TileGrid grid_;
  const float* weights_ = nullptr;
  Filters forward_, turned_;
};

// bf16's direct products are twice as fast here as fp32's, so transforms do not pay for few
// channels. With AMX, direct products are faster than any of these.
bool PaysInBF16(const Conv2dSpec& spec) {
  constexpr unsigned kAmx = dnnl_cpu_isa_avx512_core_amx;
  const bool has_amx = (static_cast<unsigned>(dnnl_get_effective_cpu_isa()) & kAmx) == kAmx;
  return !has_amx && spec.in_channels * spec.out_channels >= 64 * 64;
}

}  // namespace

bool WinogradPays(const Conv2dSpec& spec) {
  const TileGrid grid{spec.height, spec.width};
  return spec.kernel == 3 && spec.stride == 1 && spec.padding == 1 && !spec.bias &&
         spec.in_channels % kGroup == 0 && spec.out_channels % kGroup == 0 &&
         2 * kPoints * grid.per_image() <= kTaps * spec.height * spec.width &&
         (spec.compute == DType::kF32 || PaysInBF16(spec));
}

std::unique_ptr<Conv2d> NewWinogradConv2d(OneDnn* onednn, const Conv2dSpec& spec) {
  assert(WinogradPays(spec));
  return std::make_unique<WinogradConv2d>(onednn, spec);
}

}  // namespace thinwire::cpu
