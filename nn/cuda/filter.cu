#include <algorithm>
#include <utility>

#include "nn/cuda/filter.h"
#include "nn/cuda/parameter_update.cuh"
#include "nn/cuda/vectors.cuh"
#include "tensor/cuda/bf16.cuh"
#include "tensor/cuda/error.h"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {
namespace {

// The filters of one launch, each with its own blocks.
struct Joined {
  static constexpr int kMost = 96;

  const void* from[kMost];
  void* to[kMost];
  int64_t out[kMost];
  int64_t first_block[kMost];
  int in[kMost], pixels[kMost];
  bool wide[kMost];  // memory allows vectors
  int count;
};
static_assert(sizeof(Joined) <= 4096, "does not fit a launch");

constexpr int kVector = 8;        // elements of a thread at once, if a filter has one pixel
constexpr int kBlock = 4096;      // elements of a block of such a filter
constexpr int kPairs = kThreads;  // (out, in) pairs of a block of any other filter

// Copies elements [begin, end) of a filter that is the same packed and unpacked.
template <typename T>
__device__ inline void Copy(const float* from, T* to, bool wide, int64_t begin, int64_t end) {
  int64_t scalars = begin;  // elements from here on are copied one by one
  if (wide) {
    scalars = end - (end - begin) % kVector;
    for (int64_t at = begin + kVector * threadIdx.x; at < scalars; at += kVector * kThreads) {
      float x[kVector];
      LoadAligned(from + at, x);
      StoreAligned(x, to + at);
    }
  }
  for (int64_t at = scalars + threadIdx.x; at < end; at += kThreads) Store(from[at], to + at);
}

// Packs filters. A thread has all pixels of one (out, in). In [out, in, pixels] they are
// contiguous, so a warp's strided accesses still use every byte of their cache lines. In [out,
// pixels, in] neighbouring threads access neighbouring elements.
template <typename T>
__global__ void PackAll(Joined filters) {
  const int filter = ParameterOf(filters.first_block, filters.count, blockIdx.x);
  const int64_t block = blockIdx.x - filters.first_block[filter];
  const auto* const weights = static_cast<const float*>(filters.from[filter]);
  auto* const packed = static_cast<T*>(filters.to[filter]);
  const int in_count = filters.in[filter], pixels = filters.pixels[filter];
  const int64_t pairs = filters.out[filter] * in_count;
  if (pixels == 1) {
    const int64_t end = (block + 1) * kBlock;
    return Copy(weights, packed, filters.wide[filter], block * kBlock, end < pairs ? end : pairs);
  }
  const int64_t pair = block * kPairs + threadIdx.x;
  if (pair >= pairs) return;
  const int64_t out = pair / in_count, in = pair - out * in_count;
  const float* const from = weights + pair * pixels;
  T* const to = packed + out * pixels * in_count + in;
  for (int64_t p = 0; p < pixels; ++p) Store(from[p], to + p * in_count);
}

// Part of one output channel's filter that a block transposes in shared memory.
constexpr int kChannels = 256, kPixels = 16;
constexpr int kAtOnce = 9;  // loads of a thread that must be under way together

// Returns the number of such parts of `extent`.
template <typename T>
__host__ __device__ constexpr T Parts(T extent, int part) {
  return (extent + part - 1) / part;
}

// Adds packed gradients. Neighbouring threads read neighbours in `packed`, then add to neighbours
// in `gradient`.
template <typename T>
__global__ void AddAll(Joined filters) {
  __shared__ float part[kPixels][kChannels + 4];  // + 4: few of 3 x 3 pixels share a bank
  const int filter = ParameterOf(filters.first_block, filters.count, blockIdx.x);
  const int block = static_cast<int>(blockIdx.x - filters.first_block[filter]);
  const int all_in = filters.in[filter], all_pixels = filters.pixels[filter];
  const int of_channels = Parts(all_in, kChannels), of_pixels = Parts(all_pixels, kPixels);
  const int64_t out = block / (of_channels * of_pixels);
  const int in = block / of_pixels % of_channels * kChannels;
  const int pixel = block % of_pixels * kPixels;
  const int channels = all_in - in < kChannels ? all_in - in : kChannels;
  const int pixels = all_pixels - pixel < kPixels ? all_pixels - pixel : kPixels;
  const T* const from =
      static_cast<const T*>(filters.from[filter]) + (out * all_pixels + pixel) * all_in + in;
  float* const to =
      static_cast<float*>(filters.to[filter]) + (out * all_in + in) * all_pixels + pixel;
  const int thread = static_cast<int>(threadIdx.x), count = channels * pixels;
  const auto transposed = [&](int i) { return i / pixels * all_pixels + i % pixels; };
  float before[kAtOnce];
  const auto load = [&](int first) {
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int i = first + j * kThreads;
      before[j] = i < count ? to[transposed(i)] : 0;
    }
  };
  load(thread);  // overlaps the loads below
  for (int i = thread; i < count; i += kThreads) {
    part[i / channels][i % channels] = Load(from + i / channels * all_in + i % channels);
  }
  __syncthreads();
  for (int first = thread; first < count; first += kAtOnce * kThreads) {
    if (first != thread) load(first);
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int i = first + j * kThreads;
      if (i < count) to[transposed(i)] = before[j] + part[i % pixels][i / pixels];
    }
  }
}

int64_t PackBlocks(const FilterShape& shape) {
  return Parts(shape.out * shape.in, shape.pixels == 1 ? kBlock : kPairs);
}

int64_t AddBlocks(const FilterShape& shape) {
  return shape.out * Parts(shape.in, kChannels) * Parts(shape.pixels, kPixels);
}

// Launches the kernel for those filters whose elements are of `type`.
template <typename Filter>
Error LaunchJoined(CudaDevice* device, const std::vector<Filter>& filters, DType type,
                   int64_t (*blocks_of)(const FilterShape&), void (*kernel)(Joined)) {
  Joined joined{};
  int64_t blocks = 0;
  for (size_t i = 0; i < filters.size(); ++i) {
    const Filter& filter = filters[i];
    if (filter.type == type) {
      const int at = joined.count++;
      joined.from[at] = filter.from;
      joined.to[at] = filter.to;
      joined.out[at] = filter.shape.out;
      joined.in[at] = static_cast<int>(filter.shape.in);
      joined.pixels[at] = static_cast<int>(filter.shape.pixels);
      joined.wide[at] = AreAligned(filter.from, filter.to);
      joined.first_block[at] = blocks;
      blocks += blocks_of(filter.shape);
    }
    const bool is_full = joined.count == Joined::kMost || i + 1 == filters.size();
    if (!is_full || joined.count == 0) continue;
    RETURN_ERROR(Launch(device, BlocksWith(1, blocks), dim3(kThreads), kernel, joined));
    joined.count = 0;
    blocks = 0;
  }
  return Error{};
}

}  // namespace

Error Filters::Pack(const FilterShape& shape, const float* weights, DType type, void* packed) {
  packs_.push_back({shape, type, weights, packed});
  return joins_ ? Error{} : FinishPacks();
}

// If the gradient waits already, one of the two sums would be lost in a common launch; so that is
// finished first.
Error Filters::AddGradient(const FilterShape& shape, std::unique_ptr<CudaScratch> packed,
                           DType type, float* gradient) {
  const auto is_same = [gradient](const Filter& filter) { return filter.to == gradient; };
  if (std::any_of(gradients_.begin(), gradients_.end(), is_same)) RETURN_ERROR(FinishGradients());
  gradients_.push_back({shape, type, packed->as<void>(), gradient});
  memory_.push_back(std::move(packed));
  return joins_ ? Error{} : FinishGradients();
}

void Filters::Join() {
  packs_.clear();
  gradients_.clear();
  memory_.clear();
  joins_ = true;
}

Error Filters::FinishPacks() {
  if (packs_.empty()) return Error{};
  const std::vector<Filter> packs = std::exchange(packs_, {});
  RETURN_ERROR(LaunchJoined(device_, packs, DType::kF32, PackBlocks, PackAll<float>));
  return LaunchJoined(device_, packs, DType::kBF16, PackBlocks, PackAll<uint16_t>);
}

Error Filters::FinishGradients() {
  const std::vector<Filter> gradients = std::exchange(gradients_, {});
  const std::vector<std::unique_ptr<CudaScratch>> memory = std::exchange(memory_, {});
  RETURN_ERROR(LaunchJoined(device_, gradients, DType::kF32, AddBlocks, AddAll<float>));
  return LaunchJoined(device_, gradients, DType::kBF16, AddBlocks, AddAll<uint16_t>);
}

Error Filters::Finish() {
  joins_ = false;
  const Error packed = FinishPacks();
  const Error added = FinishGradients();
  return packed.ok() ? added : packed;
}

}  // namespace thinwire::cuda
