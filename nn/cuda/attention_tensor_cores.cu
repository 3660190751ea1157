// Attention on tensor cores. Blocks have four warps; each warp keeps 16 rows of a result in its
// registers and multiplies them by tiles in shared memory. The result of one product, narrowed, is
// a factor of the next (tensor/cuda/tensor_cores.cuh), so scores never leave the registers.

#include <cmath>

#include "nn/cuda/attention_kernels.cuh"
#include "nn/cuda/vectors.cuh"
#include "tensor/cuda/launch.h"
#include "tensor/cuda/reduce.cuh"
#include "tensor/cuda/tensor_cores.cuh"

namespace thinwire::cuda {
namespace {

constexpr int kBlockWarps = 4, kBlockThreads = kBlockWarps * 32;
constexpr int kWarpRows = 16;
constexpr int kBlockRows = kBlockWarps * kWarpRows;

// Rows of a head in shared memory. Rows are 16 bytes further apart than they are long, so the eight
// rows that ldmatrix reads at once are in different banks.
template <int kRows, int kSize>
struct alignas(16) Tile {
  static constexpr int kStride = kSize + 8;
  uint16_t of[kRows * kStride];
};

// 16 rows as the left factor of a product over kInner columns, and 16 rows of a result.
template <int kInner>
using Factor = uint32_t[kInner / 16][4];
template <int kColumns>
using Result = float[kColumns / 8][4];

__device__ inline int Lane() { return static_cast<int>(threadIdx.x % kWarpThreads); }
__device__ inline int Warp() { return static_cast<int>(threadIdx.x / kWarpThreads); }
// Return the row and the column of element e of a thread's part n of a result.
__device__ inline int RowOf(int e) { return Lane() / 4 + e / 2 * 8; }
__device__ inline int ColumnOf(int n, int e) { return n * 8 + Lane() % 4 * 2 + e % 2; }

// Starts to copy rows from `first` on, with zeros from row `limit` on. All threads of the block
// call it.
template <int kRows, int kSize>
__device__ inline void StartFill(const HeadRows& rows, int64_t sample, int64_t head, int64_t first,
                                 int64_t limit, uint16_t* tile) {
  constexpr int kVectors = kSize / 8, kStep = kBlockThreads / kVectors;
  const int row = static_cast<int>(threadIdx.x) / kVectors, column = threadIdx.x % kVectors * 8;
  const int64_t left = limit - first;
  const uint16_t* const begin = rows.Row<const uint16_t>(sample, first, head);
  const uint16_t* from = begin + row * rows.position + column;
#pragma unroll
  for (int k = 0; k < kRows / kStep; ++k, from += kStep * rows.position) {
    const int at = row + k * kStep;
    StartCopy(tile + at * Tile<kRows, kSize>::kStride + column, at < left ? from : begin,
              at < left);
  }
}

// Loads this warp's 16 of the block's rows as a factor. They go through `tile`, which has room for
// the block's rows.
template <int kSize>
__device__ inline void LoadFactor(const HeadRows& rows, int64_t sample, int64_t head, int64_t first,
                                  int64_t limit, uint16_t* tile, Factor<kSize>& factor) {
  constexpr int kStride = Tile<kBlockRows, kSize>::kStride;
  StartFill<kBlockRows, kSize>(rows, sample, head, first, limit, tile);
  EndCopies();
  AwaitCopies<0>();
  __syncthreads();
  // The row whose address this lane gives to ldmatrix: 16 rows, in two halves of 8 columns.
  const uint16_t* const row = tile + (Warp() * kWarpRows + Lane() % 16) * kStride + Lane() / 16 * 8;
#pragma unroll
  for (int k = 0; k < kSize / 16; ++k) LoadMatrices(row + k * 16, factor[k]);
  __syncthreads();  // now the tile may be overwritten
}

// Rows of two tensors that a block goes over, twice: one pair is filled while the other is read.
template <int kRows, int kSize>
struct Pairs {
  Tile<kRows, kSize> of[2][2];
};
// Calls use(place, i) for place = begin, begin + kRows, ... below `end`, when pair i holds what
// start(place, i) has started to copy. The next pair is already being copied meanwhile.
template <int kRows, typename Start, typename Use>
__device__ inline void ForEachPair(int64_t begin, int64_t end, const Start& start, const Use& use) {
  if (begin >= end) return;
  int i = 0;
  start(begin, i);
  EndCopies();
  for (int64_t place = begin; place < end; place += kRows, i ^= 1) {
    if (place + kRows < end) start(place + kRows, i ^ 1);
    // Ends a group even if nothing was started, so that all but the last group means pair i.
    EndCopies();
    AwaitCopies<1>();
    __syncthreads();
    use(place, i);
    __syncthreads();
  }
}

// Computes result += factor tile^T, with a column for each row of the tile.
template <int kRows, int kSize>
__device__ inline void MultiplyByRows(const Factor<kSize>& factor, const uint16_t* tile,
                                      Result<kRows>& result) {
  constexpr int kStride = Tile<kRows, kSize>::kStride;
  // ldmatrix loads four [8, 8] matrices: rows 0-7 and 8-15 of the tile, two halves of columns each.
  const uint16_t* const row = tile + (Lane() / 16 * 8 + Lane() % 8) * kStride + Lane() / 8 % 2 * 8;
#pragma unroll
  for (int k = 0; k < kSize / 16; ++k) {
#pragma unroll
    for (int n = 0; n < kRows / 16; ++n) {
      uint32_t words[4];
      LoadMatrices(row + n * 16 * kStride + k * 16, words);
      MultiplyAdd(factor[k], words[0], words[1], result[2 * n]);
      MultiplyAdd(factor[k], words[2], words[3], result[2 * n + 1]);
    }
  }
}

// Computes result += narrowed(shares) tile; shares has a column for each row of the tile.
template <int kRows, int kSize>
__device__ inline void MultiplyShares(const Result<kRows>& shares, const uint16_t* tile,
                                      Result<kSize>& result) {
  constexpr int kStride = Tile<kRows, kSize>::kStride;
  const uint16_t* const row = tile + Lane() % 16 * kStride + Lane() / 16 * 8;
#pragma unroll
  for (int k = 0; k < kRows / 16; ++k) {
    // Two neighbouring results, narrowed, are one factor: no exchange between threads is needed.
    const float(&left)[4] = shares[2 * k];
    const float(&right)[4] = shares[2 * k + 1];
    const uint32_t factor[4] = {NarrowTwo(left[0], left[1]), NarrowTwo(left[2], left[3]),
                                NarrowTwo(right[0], right[1]), NarrowTwo(right[2], right[3])};
#pragma unroll
    for (int n = 0; n < kSize / 16; ++n) {
      uint32_t words[4];
      LoadTransposed(row + k * 16 * kStride + n * 16, words);
      MultiplyAdd(factor, words[0], words[1], result[2 * n]);
      MultiplyAdd(factor, words[2], words[3], result[2 * n + 1]);
    }
  }
}

// Stores this warp's 16 rows, from `first` on and below `limit`. A thread's rows are multiplied by
// factors[0] and, eight rows below, factors[1].
template <int kSize>
__device__ inline void StoreResult(const HeadRows& rows, int64_t sample, int64_t head,
                                   int64_t first, int64_t limit, const float (&factors)[2],
                                   const Result<kSize>& result) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t row = first + RowOf(2 * half);
    if (row >= limit) return;
    uint16_t* const to = rows.Row<uint16_t>(sample, row, head);
#pragma unroll
    for (int n = 0; n < kSize / 8; ++n) {
      *reinterpret_cast<uint32_t*>(to + ColumnOf(n, 0)) =
          NarrowTwo(factors[half] * result[n][2 * half], factors[half] * result[n][2 * half + 1]);
    }
  }
}

// Stores gradients of this warp's 16 keys or values, from `first` on, times factor, plus what
// `cached` has of them.
template <int kSize>
__device__ inline void StoreKeys(const AttentionTask& a, int64_t sample, int64_t head,
                                 int64_t first, float factor, const HeadRows& rows,
                                 const HeadRows& cached, const Result<kSize>& result) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t key = first + RowOf(2 * half);
    if (key >= a.keys()) return;
#pragma unroll
    for (int n = 0; n < kSize / 8; ++n) {
      const int column = ColumnOf(n, 0);
      float one = factor * result[n][2 * half], other = factor * result[n][2 * half + 1];
      const bool is_whole = a.Complete(cached, sample, key, head, column, &one);
      a.Complete(cached, sample, key, head, column + 1, &other);
      if (!is_whole) continue;
      uint16_t* const to = rows.Row<uint16_t>(sample, key - a.first_position, head) + column;
      *reinterpret_cast<uint32_t*>(to) = NarrowTwo(one, other);
    }
  }
}

// Combines a value over the four neighbouring threads that share rows.
template <typename Operation>
__device__ inline float RowReduce(float value) {
  value = Operation()(value, __shfl_xor_sync(kWholeWarp, value, 1));
  return Operation()(value, __shfl_xor_sync(kWholeWarp, value, 2));
}

// The place of a block: 64 rows of a head's results. Blocks with the most scores come first, so
// that the last ones to run are short.
struct BlockPlace {
  int64_t sample, head, first;

  __device__ BlockPlace(const AttentionTask& a, int64_t heads, int64_t rows, bool last_is_longest) {
    const int64_t tiles = (rows + kBlockRows - 1) / kBlockRows;
    int64_t at = blockIdx.x;
    head = at % heads;
    at /= heads;
    sample = at % a.batch;
    at /= a.batch;
    first = (last_is_longest ? tiles - 1 - at : at) * kBlockRows;
  }
};

constexpr float kLog2E = 1.44269504f, kLn2 = 0.693147181f;

// The running softmax of a thread's two rows, in powers of two, for which GPUs have an instruction.
struct RunningSoftmax {
  float greatest[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};  // sums: this thread's columns only

  // Replaces scores by 2^(score - greatest). Sets factors[h] to what earlier results of row h must
  // be multiplied by, since the greatest score may have grown.
  template <int kKeys>
  __device__ void Add(Result<kKeys>& scores, float (&factors)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float most = greatest[half];
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        const float a = scores[n][2 * half], b = scores[n][2 * half + 1];
        most = a > most ? a : most;
        most = b > most ? b : most;
      }
      most = RowReduce<Greatest>(most);
      const float shift = most == -INFINITY ? 0.0f : most;  // so far the row has seen no key
      factors[half] = exp2f(greatest[half] - shift);
      greatest[half] = most;
      float total = 0;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        total += scores[n][2 * half] = exp2f(scores[n][2 * half] - shift);
        total += scores[n][2 * half + 1] = exp2f(scores[n][2 * half + 1] - shift);
      }
      sum[half] = sum[half] * factors[half] + total;
    }
  }
};

// Rows of the other side at once: as many as a thread has registers, and a block memory, for.
template <int kSize>
constexpr int kOthers = kSize <= 64 ? 64 : 32;

// For scores whose rows are queries from `query` on and whose columns are keys from `key` on: which
// columns a thread's two rows see, and the scores' indices in the mask.
struct KeyColumns {
  int first[2], last[2];
  uint32_t element[2];

  __device__ KeyColumns(const AttentionTask& a, int64_t sample, int64_t head, int64_t query,
                        int64_t key) {
    for (int half = 0; half < 2; ++half) {
      const int row = RowOf(2 * half);
      first[half] = static_cast<int>(a.FirstSeenBy(sample, query + row) - key);
      last[half] = static_cast<int>(a.SeenBy(sample, query + row) - 1 - key);
      element[half] = a.ElementAt(head, query + row) + static_cast<uint32_t>(key);
    }
  }
  __device__ bool Sees(int n, int e) const {
    const int column = ColumnOf(n, e);
    return column >= first[e / 2] && column <= last[e / 2];
  }
  __device__ uint32_t Element(int n, int e) const {
    return element[e / 2] + static_cast<uint32_t>(ColumnOf(n, e));
  }
};

// Returns the first key of the first tile of kKeys of which one of a block's queries sees a key.
template <int kKeys>
__device__ inline int64_t FirstTile(const AttentionTask& a, const BlockPlace& at) {
  const int64_t first = a.FirstSeenBy(at.sample, at.first);
  return first > 0 ? first / kKeys * kKeys : 0;
}

// Returns the first column that may see `key`, for scores whose columns are queries from `query`
// on.
__device__ inline int FirstColumn(const AttentionTask& a, int64_t sample, int64_t key,
                                  int64_t query) {
  if (a.causal) return static_cast<int>(key - a.first_position - query);
  return key < a.SeenBy(sample, query) ? 0 : kBlockRows;
}

template <int kSize>
__global__ void __launch_bounds__(kBlockThreads) AttendRows(AttentionTask a) {
  constexpr int kKeys = kOthers<kSize>;
  __shared__ Pairs<kKeys, kSize> tiles;  // keys and values
  const BlockPlace at(a, a.heads, a.queries, /*last_is_longest=*/true);
  const int64_t kv_head = at.head / a.group(), query = at.first + Warp() * kWarpRows;
  const SampleMask mask(a.masks, at.sample);
  const bool drops = a.masks.dropped != 0;
  const float scale = a.scale * kLog2E;
  Factor<kSize> queries;
  LoadFactor<kSize>(a.q, at.sample, at.head, at.first, a.queries, tiles.of[0][0].of, queries);
  RunningSoftmax softmax;
  Result<kSize> y = {};
  const auto start = [&](int64_t key, int i) {
    StartFill<kKeys, kSize>(a.k, at.sample, kv_head, key, a.keys(), tiles.of[i][0].of);
    StartFill<kKeys, kSize>(a.v, at.sample, kv_head, key, a.keys(), tiles.of[i][1].of);
  };
  const auto use = [&](int64_t key, int i) {
    const KeyColumns columns(a, at.sample, at.head, query, key);
    Result<kKeys> scores = {};
    // Scores of this block of keys, in powers of two, with the future masked out.
    MultiplyByRows<kKeys, kSize>(queries, tiles.of[i][0].of, scores);
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        scores[n][e] = columns.Sees(n, e) ? scores[n][e] * scale : -INFINITY;
      }
    }
    float factors[2];
    // y so far was made with an older greatest score.
    softmax.Add<kKeys>(scores, factors);
#pragma unroll
    for (int n = 0; n < kSize / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) y[n][e] *= factors[e / 2];
    }
    if (drops) {
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          if (!mask.Keeps(columns.Element(n, e))) scores[n][e] = 0;
        }
      }
    }
    MultiplyShares<kKeys, kSize>(scores, tiles.of[i][1].of, y);
  };
  ForEachPair<kKeys>(FirstTile<kKeys>(a, at), a.SeenBefore(at.sample, at.first + kBlockRows), start,
                     use);
  float factors[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float sum = RowReduce<Sum>(softmax.sum[half]);
    factors[half] = a.masks.scale / sum;
    const int64_t row = query + RowOf(2 * half);
    if (a.log_sum_exp == nullptr || Lane() % 4 != 0 || row >= a.queries) continue;
    a.log_sum_exp[a.StatisticAt(at.sample, at.head, row)] =
        softmax.greatest[half] * kLn2 + logf(sum);
  }
  StoreResult<kSize>(a.y, at.sample, at.head, query, a.queries, factors, y);
}

// Computes dq = ds k scale of 64 queries, with the names of attention_tiles.cu.
template <int kSize>
__global__ void __launch_bounds__(kBlockThreads) DifferentiateQueries(AttentionTask a) {
  constexpr int kKeys = kOthers<kSize>;
  __shared__ Pairs<kKeys, kSize> tiles;  // keys and values
  const BlockPlace at(a, a.heads, a.queries, /*last_is_longest=*/true);
  const int64_t kv_head = at.head / a.group(), query = at.first + Warp() * kWarpRows;
  const SampleMask mask(a.masks, at.sample);
  const bool drops = a.masks.dropped != 0;
  const float scale = a.scale * kLog2E;
  Factor<kSize> queries, dy;
  LoadFactor<kSize>(a.q, at.sample, at.head, at.first, a.queries, tiles.of[0][0].of, queries);
  LoadFactor<kSize>(a.dy, at.sample, at.head, at.first, a.queries, tiles.of[0][0].of, dy);
  float log_sum_exp[2], means[2];
  for (int half = 0; half < 2; ++half) {
    const int64_t row = query + RowOf(2 * half);
    const int64_t statistic = a.StatisticAt(at.sample, at.head, row < a.queries ? row : 0);
    log_sum_exp[half] = a.log_sum_exp[statistic] * kLog2E;
    means[half] = a.means[statistic];
  }
  Result<kSize> dq = {};
  const auto start = [&](int64_t key, int i) {
    StartFill<kKeys, kSize>(a.k, at.sample, kv_head, key, a.keys(), tiles.of[i][0].of);
    StartFill<kKeys, kSize>(a.v, at.sample, kv_head, key, a.keys(), tiles.of[i][1].of);
  };
  const auto use = [&](int64_t key, int i) {
    const KeyColumns columns(a, at.sample, at.head, query, key);
    Result<kKeys> scores = {}, ds = {};
    MultiplyByRows<kKeys, kSize>(queries, tiles.of[i][0].of, scores);
    MultiplyByRows<kKeys, kSize>(dy, tiles.of[i][1].of, ds);
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        if (drops) ds[n][e] *= mask.Keeps(columns.Element(n, e)) ? a.masks.scale : 0.0f;
        const float p = exp2f(scores[n][e] * scale - log_sum_exp[e / 2]);
        ds[n][e] = columns.Sees(n, e) ? p * (ds[n][e] - means[e / 2]) : 0.0f;
      }
    }
    MultiplyShares<kKeys, kSize>(ds, tiles.of[i][0].of, dq);
  };
  ForEachPair<kKeys>(FirstTile<kKeys>(a, at), a.SeenBefore(at.sample, at.first + kBlockRows), start,
                     use);
  StoreResult<kSize>(a.dq, at.sample, at.head, query, a.queries, {a.scale, a.scale}, dq);
}

// Computes dv += (k p)^T dy and dk += ds^T q scale of 64 keys, which are the rows of scores here.
template <int kSize>
__global__ void __launch_bounds__(kBlockThreads) DifferentiateKeys(AttentionTask a) {
  constexpr int kQueries = kOthers<kSize>;
  __shared__ Pairs<kQueries, kSize> tiles;  // queries and dy
  __shared__ float log_sum_exp[2][kQueries], means[2][kQueries];
  __shared__ int first_row[2][kQueries];  // the first of the block's keys that a query sees
  const BlockPlace at(a, a.kv_heads, a.keys(), /*last_is_longest=*/false);
  const int64_t end = a.QueriesReaching(at.sample, at.first + kBlockRows - 1);
  const int64_t key = at.first + Warp() * kWarpRows;
  const SampleMask mask(a.masks, at.sample);
  const bool drops = a.masks.dropped != 0;
  const float scale = a.scale * kLog2E;
  Factor<kSize> keys, values;
  LoadFactor<kSize>(a.k, at.sample, at.head, at.first, a.keys(), tiles.of[0][0].of, keys);
  LoadFactor<kSize>(a.v, at.sample, at.head, at.first, a.keys(), tiles.of[0][0].of, values);
  Result<kSize> dk = {}, dv = {};
  for (int64_t head = at.head * a.group(); head < (at.head + 1) * a.group(); ++head) {
    const auto start = [&](int64_t query, int i) {
      StartFill<kQueries, kSize>(a.q, at.sample, head, query, a.queries, tiles.of[i][0].of);
      StartFill<kQueries, kSize>(a.dy, at.sample, head, query, a.queries, tiles.of[i][1].of);
      if (threadIdx.x >= kQueries) return;
      const int64_t row = query + threadIdx.x;
      const bool exists = row < a.queries;
      const int64_t statistic = a.StatisticAt(at.sample, head, exists ? row : 0);
      log_sum_exp[i][threadIdx.x] = exists ? a.log_sum_exp[statistic] * kLog2E : INFINITY;
      means[i][threadIdx.x] = a.means[statistic];
      first_row[i][threadIdx.x] = static_cast<int>(a.FirstSeenBy(at.sample, row) - at.first);
    };
    const auto use = [&](int64_t query, int i) {
      // The first column, a query, that may see the key of each of the thread's rows.
      const int first[2] = {FirstColumn(a, at.sample, key + RowOf(0), query),
                            FirstColumn(a, at.sample, key + RowOf(2), query)};
      const uint32_t element = a.ElementAt(head, query) + static_cast<uint32_t>(key);
      Result<kQueries> kept = {}, ds = {};
      MultiplyByRows<kQueries, kSize>(keys, tiles.of[i][0].of, kept);
      MultiplyByRows<kQueries, kSize>(values, tiles.of[i][1].of, ds);
#pragma unroll
      for (int n = 0; n < kQueries / 8; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int column = ColumnOf(n, e), row = RowOf(e);
          const bool sees =
              column >= first[e / 2] && Warp() * kWarpRows + row >= first_row[i][column];
          const float p = sees ? exp2f(kept[n][e] * scale - log_sum_exp[i][column]) : 0.0f;
          kept[n][e] = p;
          if (drops) {
            const auto in_mask = static_cast<uint32_t>(column * a.queries + row);
            const float k = mask.Keeps(element + in_mask) ? a.masks.scale : 0.0f;
            kept[n][e] *= k;
            ds[n][e] *= k;
          }
          ds[n][e] = sees ? p * (ds[n][e] - means[i][column]) : 0.0f;
        }
      }
      MultiplyShares<kQueries, kSize>(kept, tiles.of[i][1].of, dv);
      MultiplyShares<kQueries, kSize>(ds, tiles.of[i][0].of, dk);
    };
    ForEachPair<kQueries>(a.FirstQuery(at.first), end, start, use);
  }
  StoreKeys<kSize>(a, at.sample, at.head, key, a.scale, a.dk, a.cached_dk, dk);
  StoreKeys<kSize>(a, at.sample, at.head, key, 1, a.dv, a.cached_dv, dv);
}

using Kernel = void (*)(AttentionTask);

// Instances of a kernel by head size.
struct Kernels {
  Kernel of_32, of_64, of_128;
};

Error LaunchBlocks(CudaDevice* device, const Kernels& kernels, const AttentionTask& a,
                   int64_t heads, int64_t rows) {
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  const Kernel kernel = a.head_size == 32   ? kernels.of_32
                        : a.head_size == 64 ? kernels.of_64
                                            : kernels.of_128;
  const int64_t tiles = (rows + kBlockRows - 1) / kBlockRows;
  return Launch(stream, BlocksWith(1, a.batch * heads * tiles), dim3(kBlockThreads), kernel, a);
}

}  // namespace

Error AttendOnTensorCores(CudaDevice* device, const AttentionTask& a) {
  return LaunchBlocks(device, {AttendRows<32>, AttendRows<64>, AttendRows<128>}, a, a.heads,
                      a.queries);
}

Error DifferentiateOnTensorCores(CudaDevice* device, const AttentionTask& a) {
  const Kernels queries = {DifferentiateQueries<32>, DifferentiateQueries<64>,
                           DifferentiateQueries<128>};
  const Kernels keys = {DifferentiateKeys<32>, DifferentiateKeys<64>, DifferentiateKeys<128>};
  RETURN_ERROR(LaunchBlocks(device, queries, a, a.heads, a.queries));
  return LaunchBlocks(device, keys, a, a.kv_heads, a.keys());
}

}  // namespace thinwire::cuda
