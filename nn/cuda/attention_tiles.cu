// Attention by tiles of 64 queries and 64 keys, in fp32. A block of 256 threads computes 64 columns
// of the results of its rows. If heads are larger, several blocks compute the same scores.

#include <cmath>

#include "nn/cuda/attention_kernels.cuh"
#include "nn/cuda/vectors.cuh"
#include "tensor/cuda/launch.h"
#include "tensor/cuda/reduce.cuh"

namespace thinwire::cuda {
namespace {

constexpr int kTile = 64;   // queries, keys, columns
constexpr int kInner = 16;  // depth of a product that is staged together
constexpr int kEach = 4;    // rows and columns of one thread
constexpr int kAcross = kTile / kEach;
static_assert(kAcross * kAcross == kThreads);

// A thread's part of a tile: rows Row(0) to Row(3) and columns Column(0) to Column(3).
using Part = float[kEach][kEach];
__device__ inline int Row(int i) { return static_cast<int>(threadIdx.x) / kAcross * kEach + i; }
__device__ inline int Column(int j) { return static_cast<int>(threadIdx.x) % kAcross * kEach + j; }

// Combines a value over the 16 neighbouring threads that share rows.
template <typename Operation>
__device__ inline float RowReduce(float value) {
  for (int distance = kAcross / 2; distance > 0; distance /= 2) {
    value = Operation()(value, __shfl_xor_sync(kWholeWarp, value, distance));
  }
  return value;
}

// Slices of both factors in shared memory, depth first. The padding keeps vectors aligned and
// spreads rows over banks.
struct alignas(16) Staged {
  float rows[kInner][kTile + kEach], columns[kInner][kTile + kEach];
};
struct Scores {
  float of[kTile][kTile + 1];
};

// Sets to[k][i] = factor(begin + k, i), with zeros behind `inner`. Neighbouring threads have
// neighbouring k if what the factor reads is contiguous in k, else neighbouring i; so loads
// coalesce.
enum class Along { kInner, kOuter };
template <Along kAlong, typename Factor>
__device__ inline void Stage(const Factor& factor, int64_t begin, int64_t inner,
                             float (&to)[kInner][kTile + kEach]) {
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int i = kAlong == Along::kInner ? thread / kEach : thread % kAcross * kEach + e;
    const int k = kAlong == Along::kInner ? thread % kEach * kEach + e : thread / kAcross;
    to[k][i] = begin + k < inner ? factor(begin + k, i) : 0.0f;
  }
}

// Computes part[i][j] += sum over k in [0, inner) of a(k, Row(i)) b(k, Column(j)). Begins with a
// __syncthreads(). Each thread keeps a 4 x 4 part in registers, so 8 loads from shared memory serve
// 16 products.
template <Along kAlongA, Along kAlongB, typename A, typename B>
__device__ inline void Multiply(const A& a, const B& b, int64_t inner, Staged* staged, Part& part) {
  for (int64_t begin = 0; begin < inner; begin += kInner) {
    __syncthreads();
    Stage<kAlongA>(a, begin, inner, staged->rows);
    Stage<kAlongB>(b, begin, inner, staged->columns);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kInner; ++k) {
      float rows[kEach], columns[kEach];
      LoadAligned(&staged->rows[k][Row(0)], rows);
      LoadAligned(&staged->columns[k][Column(0)], columns);
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
#pragma unroll
        for (int j = 0; j < kEach; ++j) part[i][j] = fmaf(rows[i], columns[j], part[i][j]);
      }
    }
  }
}

// A factor of some rows of a head: element k of row `first` + i, zero from row `limit` on.
template <typename T>
struct Across {
  const HeadRows& rows;
  int64_t sample, head, first, limit;

  __device__ float operator()(int64_t k, int i) const {
    return first + i < limit ? Load(rows.Row<const T>(sample, first + i, head) + k) : 0.0f;
  }
};
// A factor in the other direction: element `column` + i of row `first` + k, zero from row `limit`
// and from element `size` on.
template <typename T>
struct Down {
  const HeadRows& rows;
  int64_t sample, head, first, limit, column, size;

  __device__ float operator()(int64_t k, int i) const {
    if (first + k >= limit || column + i >= size) return 0.0f;
    return Load(rows.Row<const T>(sample, first + k, head) + column + i);
  }
};

// The place of a block: 64 rows of a head's results, 64 columns of them. Blocks with the most
// scores come first, so that the last ones to run are short.
struct BlockPlace {
  int64_t sample, head, first, column;

  __device__ BlockPlace(const AttentionTask& a, int64_t heads, int64_t rows, bool last_is_longest) {
    const int64_t tiles = (rows + kTile - 1) / kTile;
    const int64_t chunks = (a.head_size + kTile - 1) / kTile;
    int64_t at = blockIdx.x;
    column = at % chunks * kTile;
    at /= chunks;
    head = at % heads;
    at /= heads;
    sample = at % a.batch;
    at /= a.batch;
    first = (last_is_longest ? tiles - 1 - at : at) * kTile;
  }
};
// Returns the first key of the first tile of which one of a block's queries sees a key.
__device__ inline int64_t FirstTile(const AttentionTask& a, const BlockPlace& at) {
  const int64_t first = a.FirstSeenBy(at.sample, at.first);
  return first > 0 ? first / kTile * kTile : 0;
}
int64_t BlocksOf(const AttentionTask& a, int64_t heads, int64_t rows) {
  return a.batch * heads * ((rows + kTile - 1) / kTile) * ((a.head_size + kTile - 1) / kTile);
}

// Stores rows [first, first + 64) below `limit` and columns [column, column + 64) below `size`,
// multiplied by factor(i).
template <typename T, typename FactorOfRow>
__device__ inline void StorePart(const HeadRows& rows, const BlockPlace& at, int64_t limit,
                                 int64_t size, const FactorOfRow& factor, const Part& part) {
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int64_t row = at.first + Row(i);
    if (row >= limit) return;
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int64_t column = at.column + Column(j);
      if (column >= size) break;
      Store(part[i][j] * factor(i), rows.Row<T>(at.sample, row, at.head) + column);
    }
  }
}

// Stores gradients of 64 keys or values, times factor, plus what `cached` has of them.
template <typename T>
__device__ inline void StoreKeys(const AttentionTask& a, const BlockPlace& at, float factor,
                                 const HeadRows& rows, const HeadRows& cached, const Part& part) {
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int64_t key = at.first + Row(i);
    if (key >= a.keys()) return;
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int64_t column = at.column + Column(j);
      if (column >= a.head_size) break;
      float gradient = part[i][j] * factor;
      if (!a.Complete(cached, at.sample, key, at.head, column, &gradient)) continue;
      Store(gradient, rows.Row<T>(at.sample, key - a.first_position, at.head) + column);
    }
  }
}

// The running softmax of a thread's rows.
struct RunningSoftmax {
  float greatest[kEach], sum[kEach];

  __device__ RunningSoftmax() {
    for (int i = 0; i < kEach; ++i) greatest[i] = -INFINITY, sum[i] = 0;
  }
  // Replaces scores[j] of row i by exp(score - greatest). Returns the factor by which earlier
  // results of the row must be multiplied, since the greatest score may have grown.
  __device__ float Add(int i, float (&scores)[kEach]) {
    float most = greatest[i];
    for (const float s : scores) most = s > most ? s : most;
    most = RowReduce<Greatest>(most);
    const float shift = most == -INFINITY ? 0.0f : most;  // so far the row has seen no key
    float total = 0;
    for (float& s : scores) total += s = expf(s - shift);
    const float factor = expf(greatest[i] - shift);
    sum[i] = sum[i] * factor + RowReduce<Sum>(total);
    greatest[i] = most;
    return factor;
  }
};

template <typename T>
__global__ void AttendTile(AttentionTask a) {
  __shared__ Staged staged;
  __shared__ Scores shares;
  const BlockPlace at(a, a.heads, a.queries, /*last_is_longest=*/true);
  const int64_t kv_head = at.head / a.group(), keys = a.keys();
  const int64_t end = a.SeenBefore(at.sample, at.first + kTile);
  const SampleMask mask(a.masks, at.sample);
  RunningSoftmax softmax;
  Part y = {};
  for (int64_t key = FirstTile(a, at); key < end; key += kTile) {
    // Scores of this block of keys; then the softmax so far, y so far and the shares of values.
    Part scores = {};
    Multiply<Along::kInner, Along::kInner>(Across<T>{a.q, at.sample, at.head, at.first, a.queries},
                                           Across<T>{a.k, at.sample, kv_head, key, keys},
                                           a.head_size, &staged, scores);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int64_t query = at.first + Row(i), seen = a.SeenBy(at.sample, query);
      const int64_t first = a.FirstSeenBy(at.sample, query);
      for (int j = 0; j < kEach; ++j) {
        const bool sees = key + Column(j) >= first && key + Column(j) < seen;
        scores[i][j] = sees ? scores[i][j] * a.scale : -INFINITY;
      }
      const float factor = softmax.Add(i, scores[i]);
      const uint32_t element = a.ElementAt(at.head, query) + static_cast<uint32_t>(key);
      for (int j = 0; j < kEach; ++j) {
        y[i][j] *= factor;
        const bool keeps = mask.Keeps(element + static_cast<uint32_t>(Column(j)));
        shares.of[Row(i)][Column(j)] = keeps ? scores[i][j] : 0.0f;
      }
    }
    Multiply<Along::kInner, Along::kOuter>(
        [&](int64_t k, int i) { return shares.of[i][k]; },
        Down<T>{a.v, at.sample, kv_head, key, keys, at.column, a.head_size}, kTile, &staged, y);
  }
  StorePart<T>(
      a.y, at, a.queries, a.head_size, [&](int i) { return a.masks.scale / softmax.sum[i]; }, y);
  if (a.log_sum_exp == nullptr || at.column != 0 || Column(0) != 0) return;
  for (int i = 0; i < kEach && at.first + Row(i) < a.queries; ++i) {
    a.log_sum_exp[a.StatisticAt(at.sample, at.head, at.first + Row(i))] =
        softmax.greatest[i] + logf(softmax.sum[i]);
  }
}

// Computes `kept` = k p and `ds` for the queries from `query` on and the keys from `key` on. p are
// the softmax's results, k the dropout mask divided by 1 - rate, and mean is dy . y of a query.
// With these:
//   dv += (k p)^T dy,  dp = k (dy v^T),  ds = p (dp - mean),  dq = ds k scale,  dk += ds^T q scale.
template <typename T>
__device__ inline void MakeTile(const AttentionTask& a, const SampleMask& mask, int64_t sample,
                                int64_t head, int64_t query, int64_t key, Staged* staged,
                                Part& kept, Part& ds) {
  const int64_t kv_head = head / a.group();
  Multiply<Along::kInner, Along::kInner>(Across<T>{a.q, sample, head, query, a.queries},
                                         Across<T>{a.k, sample, kv_head, key, a.keys()},
                                         a.head_size, staged, kept);
  Multiply<Along::kInner, Along::kInner>(Across<T>{a.dy, sample, head, query, a.queries},
                                         Across<T>{a.v, sample, kv_head, key, a.keys()},
                                         a.head_size, staged, ds);
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int64_t row = query + Row(i);
    const bool exists = row < a.queries;
    const int64_t statistic = a.StatisticAt(sample, head, exists ? row : 0);
    const float log_sum_exp = a.log_sum_exp[statistic], mean = a.means[statistic];
    const uint32_t element = a.ElementAt(head, row) + static_cast<uint32_t>(key);
    const int64_t seen = exists ? a.SeenBy(sample, row) : 0;
    const int64_t first = a.FirstSeenBy(sample, row);
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const bool sees = key + Column(j) >= first && key + Column(j) < seen;
      const float p = sees ? expf(kept[i][j] * a.scale - log_sum_exp) : 0.0f;
      const bool keeps = mask.Keeps(element + static_cast<uint32_t>(Column(j)));
      const float k = keeps ? a.masks.scale : 0.0f;
      kept[i][j] = k * p;
      ds[i][j] = sees ? p * (k * ds[i][j] - mean) : 0.0f;
    }
  }
}

__device__ inline void Share(const Part& part, Scores* scores) {
  for (int i = 0; i < kEach; ++i) {
    for (int j = 0; j < kEach; ++j) scores->of[Row(i)][Column(j)] = part[i][j];
  }
}

template <typename T>
__global__ void DifferentiateQueries(AttentionTask a) {
  __shared__ Staged staged;
  __shared__ Scores scores;
  const BlockPlace at(a, a.heads, a.queries, /*last_is_longest=*/true);
  const SampleMask mask(a.masks, at.sample);
  const int64_t keys = a.keys(), end = a.SeenBefore(at.sample, at.first + kTile);
  Part dq = {};
  for (int64_t key = FirstTile(a, at); key < end; key += kTile) {
    Part kept = {}, ds = {};
    MakeTile<T>(a, mask, at.sample, at.head, at.first, key, &staged, kept, ds);
    Share(ds, &scores);
    Multiply<Along::kInner, Along::kOuter>(
        [&](int64_t k, int i) { return scores.of[i][k]; },
        Down<T>{a.k, at.sample, at.head / a.group(), key, keys, at.column, a.head_size}, kTile,
        &staged, dq);
  }
  StorePart<T>(
      a.dq, at, a.queries, a.head_size, [&](int) { return a.scale; }, dq);
}

template <typename T>
__global__ void DifferentiateKeys(AttentionTask a) {
  __shared__ Staged staged;
  __shared__ Scores scores;
  const BlockPlace at(a, a.kv_heads, a.keys(), /*last_is_longest=*/false);
  const SampleMask mask(a.masks, at.sample);
  const auto turned = [&](int64_t k, int i) { return scores.of[k][i]; };
  const int64_t end = a.QueriesReaching(at.sample, at.first + kTile - 1);
  Part dk = {}, dv = {};
  for (int64_t head = at.head * a.group(); head < (at.head + 1) * a.group(); ++head) {
    for (int64_t query = a.FirstQuery(at.first); query < end; query += kTile) {
      Part kept = {}, ds = {};
      MakeTile<T>(a, mask, at.sample, head, query, at.first, &staged, kept, ds);
      Share(kept, &scores);
      Multiply<Along::kOuter, Along::kOuter>(
          turned, Down<T>{a.dy, at.sample, head, query, a.queries, at.column, a.head_size}, kTile,
          &staged, dv);
      Share(ds, &scores);  // Multiply has a barrier after all reads of `scores`
      Multiply<Along::kOuter, Along::kOuter>(
          turned, Down<T>{a.q, at.sample, head, query, a.queries, at.column, a.head_size}, kTile,
          &staged, dk);
    }
  }
  StoreKeys<T>(a, at, a.scale, a.dk, a.cached_dk, dk);
  StoreKeys<T>(a, at, 1.0f, a.dv, a.cached_dv, dv);
}

}  // namespace

Error AttendByTiles(CudaDevice* device, const AttentionTask& a) {
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  const dim3 blocks = BlocksWith(1, BlocksOf(a, a.heads, a.queries));
  return a.type == DType::kF32 ? Launch(stream, blocks, dim3(kThreads), AttendTile<float>, a)
                               : Launch(stream, blocks, dim3(kThreads), AttendTile<uint16_t>, a);
}

Error DifferentiateByTiles(CudaDevice* device, const AttentionTask& a) {
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  const auto launch = [&](int64_t blocks, void (*kernel)(AttentionTask)) {
    return Launch(stream, BlocksWith(1, blocks), dim3(kThreads), kernel, a);
  };
  const bool wide = a.type == DType::kF32;
  RETURN_ERROR(launch(BlocksOf(a, a.heads, a.queries),
                      wide ? DifferentiateQueries<float> : DifferentiateQueries<uint16_t>));
  return launch(BlocksOf(a, a.kv_heads, a.keys()),
                wide ? DifferentiateKeys<float> : DifferentiateKeys<uint16_t>);
}

}  // namespace thinwire::cuda
