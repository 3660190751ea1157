#include "compress/cuda/stretches.h"
#include "compress/entropy/context_choice.h"
#include "compress/entropy/stretches.h"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kThreads = 256;
constexpr int kLanes = static_cast<int>(kStates);
constexpr int kRowsOfTile = 128;
// Stride of a tile in shared memory that puts the bytes of a column in different banks.
constexpr int kTileStride = kRowsOfTile + 4;

int64_t RowsOf(int64_t n) { return static_cast<int64_t>(NumRows(static_cast<size_t>(n))); }

// Parts of a string of n bytes, and a block's share: some rows of one of them.
struct PartRows {
  int64_t n, num_rows, num_parts, width, tiles;  // tiles: most tiles of a part

  PartRows(int64_t n, const RowLayout& layout)
      : n(n),
        num_rows(RowsOf(n)),
        num_parts(static_cast<int64_t>(layout.num_parts)),
        width(static_cast<int64_t>(layout.width)),
        tiles((num_rows / num_parts + kRowsOfTile) / kRowsOfTile) {}
  int64_t blocks() const { return num_parts * tiles; }

  // Calls use(code, row within the tile, lane) for each byte of the block's tile. Codes from n on
  // are behind the last. Neighbouring threads have neighbouring codes.
  template <typename Use>
  __device__ void ForEachCode(const Use& use) const {
    const int64_t part = blockIdx.x / tiles, tile = blockIdx.x % tiles;
    const int64_t begin = part * num_rows / num_parts, end = (part + 1) * num_rows / num_parts;
    const int64_t first = begin + tile * kRowsOfTile, rows = end - begin;
    const int of_stretch = static_cast<int>(kRowsOfTile * width);
    for (int i = threadIdx.x; i < kLanes * kRowsOfTile; i += kThreads) {
      const int t = i / of_stretch, o = i % of_stretch;
      const int j = o / static_cast<int>(width);
      if (first + j >= end) continue;
      const int64_t code = begin * kLanes + (t * rows + first - begin) * width + o;
      use(code, j, t * static_cast<int>(width) + o % static_cast<int>(width));
    }
  }
  // Calls use(byte among the rows, row within the tile, lane); neighbouring threads have
  // neighbours.
  template <typename Use>
  __device__ void ForEachByte(const Use& use) const {
    const int64_t part = blockIdx.x / tiles, tile = blockIdx.x % tiles;
    const int64_t begin = part * num_rows / num_parts, end = (part + 1) * num_rows / num_parts;
    const int64_t first = begin + tile * kRowsOfTile;
    for (int i = threadIdx.x; i < kLanes * kRowsOfTile; i += kThreads) {
      const int j = i / kLanes, lane = i % kLanes;
      if (first + j < end) use((first + j) * kLanes + lane, j, lane);
    }
  }
};

// Transposes a tile through shared memory, so that both the loads and the stores of neighbouring
// threads are of neighbouring bytes.
__global__ void ToRowsKernel(const uint8_t* bytes, PartRows parts, uint8_t* rows) {
  __shared__ uint8_t tile[kLanes][kTileStride];
  parts.ForEachCode(
      [&](int64_t code, int j, int lane) { tile[lane][j] = code < parts.n ? bytes[code] : 0; });
  __syncthreads();
  parts.ForEachByte([&](int64_t at, int j, int lane) { rows[at] = tile[lane][j]; });
}

__global__ void FromRowsKernel(const uint8_t* rows, PartRows parts, uint8_t* bytes) {
  __shared__ uint8_t tile[kLanes][kTileStride];
  parts.ForEachByte([&](int64_t at, int j, int lane) { tile[lane][j] = rows[at]; });
  __syncthreads();
  parts.ForEachCode([&](int64_t code, int j, int lane) {
    if (code < parts.n) bytes[code] = tile[lane][j];
  });
}

// Sums the neighbours' magnitudes, a thread per byte.
__global__ void SumsKernel(Neighbours neighbours, const uint8_t* rows, int64_t num_rows,
                           int64_t num_parts, uint8_t* sums) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t row = i / kLanes;
  if (row >= num_rows) return;
  // Part p has the rows from p num_rows / num_parts on, rounded down.
  // This inverts it: the last part that begins at or before the row.
  const int64_t part = ((row + 1) * num_parts - 1) / num_rows;
  const int64_t begin = part * num_rows / num_parts;
  int sum = 0;
  for (int k = 0; k < neighbours.count; ++k) {
    const int64_t distance = neighbours.rows[k];
    if (row - begin >= distance) sum += (rows[i - distance * kLanes] + 1) / 2;
  }
  sums[i] = static_cast<uint8_t>(min(sum, kSums - 1));
}

// Gathers the sample, a thread per byte.
__global__ void SampleKernel(const uint8_t* codes, int64_t n, const uint32_t* pieces_and_distances,
                             int64_t num_pieces, int64_t size, uint8_t* sample) {
  constexpr int64_t kBytesOfPiece = int64_t{kSampledRows} * kLanes;
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= size) return;
  const int64_t k = i / (num_pieces * kBytesOfPiece);  // 0: distance 0
  const int64_t begin = pieces_and_distances[i / kBytesOfPiece % num_pieces];
  const int64_t distance = k == 0 ? 0 : pieces_and_distances[num_pieces + k - 1];
  const int64_t at = PlaceInPiece(n, begin, i % kBytesOfPiece / kLanes, i % kLanes, distance);
  sample[i] = 0 <= at && at < n ? codes[at] : 0;
}

}  // namespace

Error SubmitToRows(CudaDevice* device, const uint8_t* bytes, int64_t n, const RowLayout& layout,
                   uint8_t* rows) {
  const PartRows parts(n, layout);
  return Launch(device, BlocksFor(parts.blocks(), 1), dim3(kThreads), ToRowsKernel, bytes, parts,
                rows);
}

Error SubmitFromRows(CudaDevice* device, const uint8_t* rows, int64_t n, const RowLayout& layout,
                     uint8_t* bytes) {
  const PartRows parts(n, layout);
  return Launch(device, BlocksFor(parts.blocks(), 1), dim3(kThreads), FromRowsKernel, rows, parts,
                bytes);
}

Error SubmitSumsOfNeighbours(CudaDevice* device, const Neighbours& neighbours, const uint8_t* rows,
                             int64_t num_rows, const RowLayout& layout, uint8_t* sums) {
  return Launch(device, BlocksFor(num_rows * kLanes, kThreads), dim3(kThreads), SumsKernel,
                neighbours, rows, num_rows, static_cast<int64_t>(layout.num_parts), sums);
}

Error SubmitSample(CudaDevice* device, const uint8_t* codes, int64_t n,
                   const uint32_t* pieces_and_distances, int64_t num_pieces, int64_t num_distances,
                   uint8_t* sample) {
  const int64_t size = (1 + num_distances) * num_pieces * int64_t{kSampledRows} * kLanes;
  return Launch(device, BlocksFor(size, kThreads), dim3(kThreads), SampleKernel, codes, n,
                pieces_and_distances, num_pieces, size, sample);
}

}  // namespace thinwire
