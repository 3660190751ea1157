#include "nn/cuda/columns.cuh"
#include "nn/cuda/kernels.h"
#include "nn/cuda/vectors.cuh"
#include "tensor/cuda/error.h"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {
namespace {

struct Windows {
  int64_t kernel, stride, padding;
  int64_t height, width, channels, out_height, out_width;

  Windows(const PoolSpec& spec, const TensorView& x, const TensorView& y)
      : kernel(spec.kernel),
        stride(spec.stride),
        padding(spec.padding),
        height(x.dims[1]),
        width(x.dims[2]),
        channels(x.dims[3]),
        out_height(y.dims[1]),
        out_width(y.dims[2]) {}
};

__device__ inline int64_t AtLeastZero(int64_t a) { return a < 0 ? 0 : a; }
__device__ inline int64_t Lesser(int64_t a, int64_t b) { return a < b ? a : b; }

// Calls visit(y, x) for the pixels of window (oy, ox) that are inside the image, in row order.
template <typename Visit>
__device__ inline void ForEachPixel(const Windows& w, int64_t oy, int64_t ox, const Visit& visit) {
  const int64_t top = oy * w.stride - w.padding, left = ox * w.stride - w.padding;
  const int64_t bottom = Lesser(top + w.kernel, w.height);
  const int64_t right = Lesser(left + w.kernel, w.width);
  for (int64_t y = AtLeastZero(top); y < bottom; ++y) {
    for (int64_t x = AtLeastZero(left); x < right; ++x) visit(y, x);
  }
}

// The greatest values so far of kN channels; of equals the first. NaN wins, as in PyTorch.
template <int kN>
struct Maxima {
  float best[kN] = {};
  bool empty = true;

  // Calls won(i) for each channel in which x is the new greatest.
  template <typename Won>
  __device__ void Meet(const float (&x)[kN], const Won& won) {
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      if (empty || x[i] > best[i] || x[i] != x[i]) {
        best[i] = x[i];
        won(i);
      }
    }
    empty = false;
  }
};

// Each block computes one row of y: blockIdx.x = image * out_height + oy.
template <typename T, int kN>
__global__ void MaxPoolRow(const T* x, T* y, Windows w) {
  const int64_t image = blockIdx.x / w.out_height, oy = blockIdx.x % w.out_height;
  const T* const from = x + image * w.height * w.width * w.channels;
  T* const to = y + static_cast<int64_t>(blockIdx.x) * w.out_width * w.channels;
  for (int64_t at = int64_t{kN} * threadIdx.x; at < w.out_width * w.channels; at += kN * kThreads) {
    const int64_t ox = at / w.channels, c = at % w.channels;
    Maxima<kN> maxima;
    ForEachPixel(w, oy, ox, [&](int64_t py, int64_t px) {
      float values[kN];
      LoadAligned(from + (py * w.width + px) * w.channels + c, values);
      maxima.Meet(values, [](int) {});
    });
    StoreAligned(maxima.best, to + at);
  }
}

// Sets [first, end) to the windows, of `count`, that contain coordinate `at`.
__device__ inline void WindowsOf(const Windows& w, int64_t at, int64_t count, int64_t* first,
                                 int64_t* end) {
  const int64_t padded = at + w.padding;
  *first = padded < w.kernel ? 0 : (padded - w.kernel) / w.stride + 1;
  *end = Lesser(padded / w.stride + 1, count);
}

// Each block computes one row of dx: blockIdx.x = image * height + iy.
template <typename T, int kN>
__global__ void MaxPoolBackwardRow(const T* x, const T* dy, T* dx, Windows w) {
  const int64_t image = blockIdx.x / w.height, iy = blockIdx.x % w.height;
  const T* const from = x + image * w.height * w.width * w.channels;
  const T* const gradient = dy + image * w.out_height * w.out_width * w.channels;
  T* const to = dx + static_cast<int64_t>(blockIdx.x) * w.width * w.channels;
  int64_t first_y, end_y, first_x, end_x;
  WindowsOf(w, iy, w.out_height, &first_y, &end_y);
  for (int64_t at = int64_t{kN} * threadIdx.x; at < w.width * w.channels; at += kN * kThreads) {
    const int64_t ix = at / w.channels, c = at % w.channels;
    WindowsOf(w, ix, w.out_width, &first_x, &end_x);
    float sums[kN] = {};
    for (int64_t oy = first_y; oy < end_y; ++oy) {
      for (int64_t ox = first_x; ox < end_x; ++ox) {
        Maxima<kN> maxima;
        bool mine[kN] = {};
        ForEachPixel(w, oy, ox, [&](int64_t py, int64_t px) {
          const bool here = py == iy && px == ix;
          float values[kN];
          LoadAligned(from + (py * w.width + px) * w.channels + c, values);
          maxima.Meet(values, [&](int i) { mine[i] = here; });
        });
        float gradients[kN];
        LoadAligned(gradient + (oy * w.out_width + ox) * w.channels + c, gradients);
#pragma unroll
        for (int i = 0; i < kN; ++i) sums[i] += mine[i] ? gradients[i] : 0;
      }
    }
    StoreAligned(sums, to + at);
  }
}

// Images of [pixels, channels]. A block has some of the channels of one image.
struct Images {
  int64_t pixels, channels;
  int64_t groups;  // blocks per image
  unsigned width;  // vectors side by side in a block: a power of two, at most 32

  Images(const TensorView& x, int64_t vector) : pixels(x.dims[1] * x.dims[2]), channels(x.dims[3]) {
    const ColumnGrid grid(pixels, channels, vector);
    groups = grid.groups;
    width = grid.width;
  }
};

// The place of a thread: its channels and pixels.
template <int kN>
struct ImageThread {
  int64_t image, channel, pixel, stride;
  bool has_channels;

  __device__ explicit ImageThread(const Images& images) {
    image = blockIdx.x / images.groups;
    channel = (blockIdx.x % images.groups * images.width + threadIdx.x % images.width) * kN;
    pixel = threadIdx.x / images.width;
    stride = kThreads / images.width;
    has_channels = channel < images.channels;
  }
};

template <typename T, int kN>
__global__ void MeanOverPixels(const T* x, T* y, Images images) {
  const ImageThread<kN> thread(images);
  const int64_t first_channel =
      thread.channel - static_cast<int64_t>(threadIdx.x % images.width) * kN;
  float sums[1][kN] = {}, values[kN];
  const T* const from = x + thread.image * images.pixels * images.channels + thread.channel;
  for (int64_t p = thread.pixel; thread.has_channels && p < images.pixels; p += thread.stride) {
    LoadAligned(from + p * images.channels, values);
#pragma unroll
    for (int i = 0; i < kN; ++i) sums[0][i] += values[i];
  }
  AddUpRows(images.width, sums, [&](int, int64_t j, double total) {
    if (first_channel + j >= images.channels) return;
    Store(static_cast<float>(total / static_cast<double>(images.pixels)),
          y + thread.image * images.channels + first_channel + j);
  });
}

template <typename T, int kN>
__global__ void SpreadOverPixels(const T* dy, T* dx, Images images) {
  const ImageThread<kN> thread(images);
  if (!thread.has_channels) return;
  float values[kN];
  LoadAligned(dy + thread.image * images.channels + thread.channel, values);
#pragma unroll
  for (int i = 0; i < kN; ++i) values[i] /= static_cast<float>(images.pixels);
  T* const to = dx + thread.image * images.pixels * images.channels + thread.channel;
  for (int64_t p = thread.pixel; p < images.pixels; p += thread.stride) {
    StoreAligned(values, to + p * images.channels);
  }
}

}  // namespace

Error Kernels::MaxPool(const PoolSpec& spec, const TensorView& x, const TensorView& y) {
  return WithElements(x.dtype, IsWide(x, y.data), [&](auto elements) {
    using T = typename decltype(elements)::Type;
    return Launch(device_, BlocksWith(1, y.dims[0] * y.dims[1]), dim3(kThreads),
                  MaxPoolRow<T, decltype(elements)::kVector>, static_cast<const T*>(x.data),
                  static_cast<T*>(y.data), Windows(spec, x, y));
  });
}

Error Kernels::MaxPoolBackward(const PoolSpec& spec, const TensorView& x, const TensorView& dy,
                               const TensorView& dx) {
  return WithElements(x.dtype, IsWide(x, dy.data, dx.data), [&](auto elements) {
    using T = typename decltype(elements)::Type;
    return Launch(device_, BlocksWith(1, x.dims[0] * x.dims[1]), dim3(kThreads),
                  MaxPoolBackwardRow<T, decltype(elements)::kVector>, static_cast<const T*>(x.data),
                  static_cast<const T*>(dy.data), static_cast<T*>(dx.data), Windows(spec, x, dy));
  });
}

Error Kernels::GlobalAvgPool(const TensorView& x, const TensorView& y) {
  return WithElements(x.dtype, IsWide(x, y.data), [&](auto elements) {
    using T = typename decltype(elements)::Type;
    constexpr int kN = decltype(elements)::kVector;
    const Images images(x, kN);
    return Launch(device_, BlocksWith(1, x.dims[0] * images.groups), dim3(kThreads),
                  MeanOverPixels<T, kN>, static_cast<const T*>(x.data), static_cast<T*>(y.data),
                  images);
  });
}

Error Kernels::GlobalAvgPoolBackward(const TensorView& dy, const TensorView& dx) {
  return WithElements(dx.dtype, IsWide(dx, dy.data), [&](auto elements) {
    using T = typename decltype(elements)::Type;
    constexpr int kN = decltype(elements)::kVector;
    const Images images(dx, kN);
    return Launch(device_, BlocksWith(1, dx.dims[0] * images.groups), dim3(kThreads),
                  SpreadOverPixels<T, kN>, static_cast<const T*>(dy.data), static_cast<T*>(dx.data),
                  images);
  });
}

}  // namespace thinwire::cuda
