#include <algorithm>
#include <vector>

#include "nn/cpu/bf16.h"
#include "nn/cpu/kernels.h"
#include "nn/cpu/parallel.h"

namespace thinwire::cpu {
namespace {

// Calls body(T*) with the element type of `view`.
template <typename Body>
void WithType(const TensorView& view, const Body& body) {
  if (view.dtype == DType::kF32) {
    body(static_cast<float*>(view.data));
  } else {
    body(static_cast<uint16_t*>(view.data));
  }
}

template <typename T>
T* As(const TensorView& view, T*) {
  return static_cast<T*>(view.data);
}

// Visits every output element of one image with the position of its maximum in the image.
struct Windows {
  Windows(const PoolSpec& spec, const TensorView& x, const TensorView& y)
      : spec(spec),
        height(x.dims[1]),
        width(x.dims[2]),
        channels(x.dims[3]),
        out_height(y.dims[1]),
        out_width(y.dims[2]) {}

  template <typename T, typename Visit>
  void ForEachWinner(const T* image, const Visit& visit) const {
    for (int64_t oy = 0; oy < out_height; ++oy) {
      for (int64_t ox = 0; ox < out_width; ++ox) {
        for (int64_t c = 0; c < channels; ++c) {
          visit((oy * out_width + ox) * channels + c, Winner(image, oy, ox, c));
        }
      }
    }
  }

  // Returns the position of the maximum. NaN wins, as in PyTorch.
  template <typename T>
  int64_t Winner(const T* image, int64_t oy, int64_t ox, int64_t c) const {
    const int64_t top = oy * spec.stride - spec.padding, left = ox * spec.stride - spec.padding;
    int64_t winner = -1;
    float best = 0;
    for (int64_t y = std::max<int64_t>(top, 0); y < std::min(top + spec.kernel, height); ++y) {
      for (int64_t x = std::max<int64_t>(left, 0); x < std::min(left + spec.kernel, width); ++x) {
        const int64_t at = (y * width + x) * channels + c;
        const float v = LoadOne(image + at);
        if (winner < 0 || v > best || v != v) {
          winner = at;
          best = v;
        }
      }
    }
    return winner;
  }

  const PoolSpec spec;
  const int64_t height, width, channels, out_height, out_width;
};

constexpr int64_t kMaxoutGrain = 4 * 1024;  // outputs; with fewer, one thread is faster

// Returns the first maximum of `group` values. NaN wins, as in PyTorch.
template <typename T>
int64_t FirstGreatest(const T* x, int64_t group) {
  int64_t winner = 0;
  float best = LoadOne(x);
  for (int64_t i = 1; i < group; ++i) {
    const float v = LoadOne(x + i);
    if (v > best || (v != v && best == best)) {
      winner = i;
      best = v;
    }
  }
  return winner;
}

// Transposes each of n matrices: y[i][column][row] = x[i][row][column].
void TransposeEach(int threads, const TensorView& from, const TensorView& to, int64_t rows,
                   int64_t columns) {
  const int64_t n = from.dims[0];
  WithType(from, [&](auto* x) {
    auto* y = As(to, x);
    ParallelFor(threads, n, [&](int64_t i) {
      const int64_t base = i * rows * columns;
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t column = 0; column < columns; ++column) {
          y[base + column * rows + row] = x[base + row * columns + column];
        }
      }
    });
  });
}

}  // namespace

Error Kernels::MaxPool(const PoolSpec& spec, const TensorView& x, const TensorView& y) {
  const Windows windows(spec, x, y);
  const int64_t n = x.dims[0], in = x.elements() / n, out = y.elements() / n;
  WithType(x, [&](auto* from) {
    auto* to = As(y, from);
    ParallelFor(threads_, n, [&](int64_t i) {
      windows.ForEachWinner(from + i * in, [&](int64_t at, int64_t winner) {
        to[i * out + at] = from[i * in + winner];
      });
    });
  });
  return Error{};
}

Error Kernels::MaxPoolBackward(const PoolSpec& spec, const TensorView& x, const TensorView& dy,
                               const TensorView& dx) {
  const Windows windows(spec, x, dy);
  const int64_t n = x.dims[0], in = x.elements() / n, out = dy.elements() / n;
  WithType(x, [&](auto* from) {
    const auto* gradient = As(dy, from);
    auto* to = As(dx, from);
    ParallelFor(threads_, n, [&](int64_t i) {
      std::vector<float> sums(in);  // fp32, as windows overlap; rounded once at the end
      windows.ForEachWinner(from + i * in, [&](int64_t at, int64_t winner) {
        sums[winner] += LoadOne(gradient + i * out + at);
      });
      for (int64_t j = 0; j < in; ++j) StoreOne(sums[j], to + i * in + j);
    });
  });
  return Error{};
}

Error Kernels::Maxout(int64_t group, const TensorView& x, const TensorView& y) {
  WithType(x, [&](auto* from) {
    auto* to = As(y, from);
    ParallelRange(threads_, y.elements(), kMaxoutGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto* values = from + i * group;
        to[i] = values[FirstGreatest(values, group)];
      }
    });
  });
  return Error{};
}

Error Kernels::MaxoutBackward(int64_t group, const TensorView& x, const TensorView& dy,
                              const TensorView& dx) {
  WithType(x, [&](auto* from) {
    const auto* gradient = As(dy, from);
    auto* to = As(dx, from);
    ParallelRange(threads_, dy.elements(), kMaxoutGrain, [&](int64_t begin, int64_t end) {
      std::fill(to + begin * group, to + end * group, 0);
      for (int64_t i = begin; i < end; ++i) {
        to[i * group + FirstGreatest(from + i * group, group)] = gradient[i];
      }
    });
  });
  return Error{};
}

Error Kernels::Resize(const TensorView& x, const TensorView& y) {
  const int64_t from_features = x.dims[x.rank - 1], to_features = y.dims[y.rank - 1];
  const int64_t kept = std::min(from_features, to_features), rows = y.elements() / to_features;
  WithType(x, [&](auto* from) {
    auto* to = As(y, from);
    ParallelFor(threads_, rows, [&](int64_t row) {
      auto* const begin = to + row * to_features;
      std::copy_n(from + row * from_features, kept, begin);
      std::fill(begin + kept, begin + to_features, 0);
    });
  });
  return Error{};
}

Error Kernels::CopyColumns(const ColumnCopy& a) {
  const int64_t rows = a.from.dims[0], from_row = a.from.dims[1], to_row = a.to.dims[1];
  WithType(a.from, [&](auto* from) {
    auto* to = As(a.to, from);
    ParallelFor(threads_, rows, [&](int64_t row) {
      std::copy_n(from + row * from_row + a.from_column, a.columns,
                  to + row * to_row + a.to_column);
    });
  });
  return Error{};
}

Error Kernels::GlobalAvgPool(const TensorView& x, const TensorView& y) {
  const int64_t n = x.dims[0], pixels = x.dims[1] * x.dims[2], channels = x.dims[3];
  WithType(x, [&](auto* from) {
    auto* to = As(y, from);
    ParallelFor(threads_, n, [&](int64_t i) {
      std::vector<float> sums(channels);
      const auto* image = from + i * pixels * channels;
      for (int64_t pixel = 0; pixel < pixels; ++pixel) {
        for (int64_t c = 0; c < channels; ++c) sums[c] += LoadOne(image + pixel * channels + c);
      }
      for (int64_t c = 0; c < channels; ++c) {
        StoreOne(sums[c] / static_cast<float>(pixels), to + i * channels + c);
      }
    });
  });
  return Error{};
}

Error Kernels::GlobalAvgPoolBackward(const TensorView& dy, const TensorView& dx) {
  const int64_t n = dx.dims[0], pixels = dx.dims[1] * dx.dims[2], channels = dx.dims[3];
  WithType(dy, [&](auto* from) {
    auto* to = As(dx, from);
    ParallelFor(threads_, n, [&](int64_t i) {
      auto* image = to + i * pixels * channels;
      for (int64_t c = 0; c < channels; ++c) {
        StoreOne(LoadOne(from + i * channels + c) / static_cast<float>(pixels), image + c);
      }
      for (int64_t pixel = 1; pixel < pixels; ++pixel) {
        std::copy(image, image + channels, image + pixel * channels);
      }
    });
  });
  return Error{};
}

Error Kernels::ToChannelsFirst(const TensorView& x, const TensorView& y) {
  TransposeEach(threads_, x, y, x.dims[1] * x.dims[2], x.dims[3]);
  return Error{};
}

Error Kernels::ToChannelsLast(const TensorView& y, const TensorView& x) {
  TransposeEach(threads_, y, x, x.dims[3], x.dims[1] * x.dims[2]);
  return Error{};
}

}  // namespace thinwire::cpu
