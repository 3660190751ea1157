#include "nn/cuda/columns.cuh"
#include "nn/cuda/kernels.h"
#include "tensor/cuda/error.h"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {
namespace {

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

Error GlobalAvgPool(CudaDevice* device, const TensorView& x, const TensorView& y) {
  return WithElements(x.dtype, IsWide(x, y.data), [&](auto elements) {
    using T = typename decltype(elements)::Type;
    constexpr int kN = decltype(elements)::kVector;
    const Images images(x, kN);
    return Launch(device, BlocksWith(1, x.dims[0] * images.groups), dim3(kThreads),
                  MeanOverPixels<T, kN>, static_cast<const T*>(x.data), static_cast<T*>(y.data),
                  images);
  });
}

Error GlobalAvgPoolBackward(CudaDevice* device, const TensorView& dy, const TensorView& dx) {
  return WithElements(dx.dtype, IsWide(dx, dy.data), [&](auto elements) {
    using T = typename decltype(elements)::Type;
    constexpr int kN = decltype(elements)::kVector;
    const Images images(dx, kN);
    return Launch(device, BlocksWith(1, dx.dims[0] * images.groups), dim3(kThreads),
                  SpreadOverPixels<T, kN>, static_cast<const T*>(dy.data), static_cast<T*>(dx.data),
                  images);
  });
}

}  // namespace thinwire::cuda
