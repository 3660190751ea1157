#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "compress/cpu/range_header.h"
#include "compress/cuda/codecs.h"
#include "compress/cuda/extremes.cuh"
#include "compress/cuda/lines.cuh"
#include "compress/cuda/pack.cuh"
#include "compress/cuda/ranges.cuh"
#include "compress/cuda/tile.cuh"
#include "compress/cuda/uniform.h"
#include "compress/cuda/uniform_codes.cuh"
#include "compress/refusals.h"
#include "tensor/cuda/bf16.cuh"
#include "tensor/cuda/error.h"

namespace thinwire {
namespace {

// Encodes tiles, the last ones first, because the pass for the ranges has left these in the cache.
template <typename T, typename Lines, typename Round>
__global__ void EncodeKernel(const T* x, int64_t n, Lines lines, Grid grid, Round round,
                             CodeWords words) {
  const int64_t tile = gridDim.x - 1 - blockIdx.x;
  typename Lines::Cursor cursor(lines, TileBegin(tile));
  const WarpPacker packer(grid.bits);
  VisitTile(tile, x, n, [&](int64_t i, const float(&v)[4]) {
    StoreCodes(words, packer, i, EncodedFour(v, i, LeftOf(n, i), grid, round, &cursor));
  });
}

// Decodes a tile. All packed words are loaded first, so that their latencies overlap.
template <typename T, typename Lines>
__global__ void DecodeKernel(const uint32_t* words, int64_t num_words, Lines lines, Grid grid,
                             float reciprocal, T* x, int64_t n, uint32_t* refused) {
  const int64_t begin = TileBegin(blockIdx.x);
  typename Lines::Cursor cursor(lines, begin);
  const WarpPacker packer(grid.bits);
  uint32_t loaded[kTileVectors];
#pragma unroll
  for (int j = 0; j < kTileVectors; ++j) {
    const int64_t index = packer.WordIndex(begin + j * kTileStride);
    loaded[j] = packer.HasWord() && index < num_words ? words[index] : 0;
  }
#pragma unroll
  for (int j = 0; j < kTileVectors; ++j) {
    const int64_t i = begin + j * kTileStride;
    const uint32_t piece = packer.Unpack(loaded[j]);
    const uint32_t mask = (1u << grid.bits) - 1;
    const int left = LeftOf(n, i);
    float v[4] = {};
    cursor.ForEach(left, [&](int k, const DecodeLine& line) {
      const int32_t code = static_cast<int32_t>((piece >> (k * grid.bits)) & mask);
      if (code > grid.codes.max_code && k < left) *refused = 1;
      const float step = static_cast<float>(code - grid.codes.zero_code) * reciprocal;
      v[k] = step * line.range + line.offset;
    });
    cursor.Advance();
    StoreVector(v, left, x + i);
  }
}

// Fills a line table, a thread per entry of a period.
template <typename ToLine>
__global__ void TableKernel(RangeHeader header, int64_t count, ToLine to_line, LineTable table) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < table.period) WriteLine(to_line(header.Read(i % count)), i, table);
}

// Fills a tensor with one value.
template <typename T>
__global__ void FillKernel(float value, T* x, int64_t n) {
  const float v[4] = {value, value, value, value};
  for (int j = 0; j < kTileVectors; ++j) {
    const int64_t i = TileBegin(blockIdx.x) + j * kTileStride;
    StoreVector(v, n - i, x + i);
  }
}

// Makes a table of lines of `numbers` floats each, from the header.
template <typename ToLine>
Error SubmitTable(CudaDevice* device, const RangeHeader& header, const Scopes& scopes,
                  ToLine to_line, int numbers, CudaScratch* memory, LineTable* table) {
  table->period = scopes.count;
  while (table->period % 4 != 0) table->period += scopes.count;
  table->step = kTileStride % table->period;
  RETURN_ERROR(memory->Reserve(numbers * table->period * sizeof(float)));
  table->floats = memory->as<float>();
  return Launch(device, BlocksFor(table->period, kTileThreads), dim3(kTileThreads),
                TableKernel<ToLine>, header, scopes.count, to_line, *table);
}

// Calls submit(lines) with the lines of all elements, according to the header.
template <typename ToLine, typename Submit>
Error WithLines(CudaDevice* device, const RangeHeader& header, const Scopes& scopes, ToLine to_line,
                int numbers, const Submit& submit) {
  const bool has_whole_tiles = !scopes.strided && scopes.elements % kTile == 0;
  if (scopes.count == 1 || has_whole_tiles) {
    return submit(OneLine<ToLine>{header, scopes.count, scopes.elements, to_line});
  }
  if (!scopes.strided) {
    return submit(ContiguousLines<ToLine>{header, ContiguousScopesOf(scopes), to_line});
  }
  CudaScratch memory(device);
  StridedLines<ToLine> lines{{}, to_line};
  RETURN_ERROR(SubmitTable(device, header, scopes, to_line, numbers, &memory, &lines.table));
  return submit(lines);
}

template <typename Round>
Error SubmitCodes(CudaDevice* device, const TensorView& x, const CodecSpec& spec, Round round,
                  const Scopes& scopes, uint8_t* payload) {
  const Grid grid = {spec.bits, GridOf(spec)};
  const CodeWords words = CodeWordsOf(spec, scopes, payload);
  const auto submit = [&](const auto& lines) {
    using Lines = std::decay_t<decltype(lines)>;
    return WithTypedData(x, [&](const auto* elements) {
      using T = std::decay_t<decltype(*elements)>;
      return LaunchTiles(device, scopes.total, EncodeKernel<T, Lines, Round>, elements,
                         scopes.total, lines, grid, round, words);
    });
  };
  return WithLines(device, RangeHeader{payload, spec.range}, scopes,
                   ToEncodeLine{grid.codes.divisor}, /*numbers=*/3, submit);
}

Error SubmitValues(CudaDevice* device, const uint8_t* payload, const CodecSpec& spec,
                   const Scopes& scopes, const TensorView& x, uint32_t* refused) {
  const Grid grid = {spec.bits, GridOf(spec)};
  const float reciprocal = 1.0f / static_cast<float>(grid.codes.divisor);
  const auto* const words =
      reinterpret_cast<const uint32_t*>(payload + UniformHeaderBytes(spec, scopes));
  const int64_t num_words = NumCodeWords(spec, scopes);
  const auto submit = [&](const auto& lines) {
    using Lines = std::decay_t<decltype(lines)>;
    return WithTypedData(x, [&](auto* elements) {
      using T = std::decay_t<decltype(*elements)>;
      return LaunchTiles(device, scopes.total, DecodeKernel<T, Lines>, words, num_words, lines,
                         grid, reciprocal, elements, scopes.total, refused);
    });
  };
  return WithLines(device, RangeHeader{payload, spec.range}, scopes, ToDecodeLine{},
                   /*numbers=*/2, submit);
}

Error DecodeConstant(CudaDevice* device, const uint8_t* payload, const TensorView& x) {
  float value;
  RETURN_ERROR(ReadConstant(payload, &value));
  const int64_t n = x.elements();
  RETURN_ERROR(WithTypedData(x, [&](auto* elements) {
    using T = std::decay_t<decltype(*elements)>;
    return LaunchTiles(device, n, FillKernel<T>, value, elements, n);
  }));
  return device->Finish();
}

}  // namespace

Error SubmitUniformEncode(CudaDevice* device, const TensorView& x, const CodecSpec& spec,
                          uint64_t random_key, uint8_t* payload, UniformEncoded* found) {
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  CudaScratch extremes(device);
  RETURN_ERROR(extremes.Reserve(scopes.count * sizeof(Extremes)));
  if (AreScopesOfBlocks(x, spec, scopes, device->multiprocessors())) {
    RETURN_ERROR(SubmitUniformScopes(device, x, spec, random_key, scopes, extremes.as<Extremes>(),
                                     CodeWordsOf(spec, scopes, payload)));
    return SubmitRanges(device, extremes.as<const Extremes>(), spec, scopes, payload, found);
  }
  RETURN_ERROR(SubmitExtremes(device, x, scopes, Counted::kAll, extremes.as<Extremes>()));
  RETURN_ERROR(SubmitRanges(device, extremes.as<const Extremes>(), spec, scopes, payload, found));
  return spec.rounding == Rounding::kStochastic
             ? SubmitCodes(device, x, spec, ByChance{random_key}, scopes, payload)
             : SubmitCodes(device, x, spec, ToNearest{}, scopes, payload);
}

Error UniformEncodeError(CudaDevice* device, const TensorView& x, const CodecSpec& spec,
                         const UniformEncoded& found) {
  if (found.nonfinite != 0) return CudaNonFiniteError(device, "uniform", x);
  if (found.overflow == 0) return Error{};
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  const int64_t first = static_cast<int64_t>(~found.overflow);
  CudaScratch extremes(device);
  RETURN_ERROR(extremes.Reserve(scopes.count * sizeof(Extremes)));
  RETURN_ERROR(SubmitExtremes(device, x, scopes, Counted::kAll, extremes.as<Extremes>()));
  Extremes of_scope;
  RETURN_ERROR(
      device->CopyToHost(&of_scope, extremes.as<const Extremes>() + first, sizeof(of_scope)));
  return RangeOverflow(MinMaxOf(of_scope));
}

Error SubmitUniformDecode(CudaDevice* device, const uint8_t* payload, const CodecSpec& spec,
                          const TensorView& x, uint32_t* refused) {
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  RETURN_ERROR(SubmitCheckRanges(device, payload, spec, scopes, refused));
  return SubmitValues(device, payload, spec, scopes, x, refused);
}

Error CudaUniformEncode(CudaDevice* device, const CodecSpec& spec, const TensorView& x,
                        const KernelContext& context, const PayloadTarget& payload) {
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  *payload.bytes = UniformPayloadBytes(spec, scopes);
  RETURN_ERROR(CheckCapacity("uniform", payload.capacity, UniformMaxPayloadBytes(spec, scopes)));
  if (scopes.count == 0) {
    return *payload.bytes == 0 ? Error{} : payload.Put(device, 0, int16_t{0});  // the exponent
  }
  DevicePayload on_device(device);
  RETURN_ERROR(on_device.Reserve(UniformHeaderBytes(spec, scopes), *payload.bytes));
  CudaScratch memory(device);
  RETURN_ERROR(memory.ReserveZeros(sizeof(UniformEncoded)));
  auto* const found_on_device = memory.as<UniformEncoded>();
  RETURN_ERROR(
      SubmitUniformEncode(device, x, spec, context.random_key, on_device.bytes(), found_on_device));
  UniformEncoded found;
  RETURN_ERROR(payload.SubmitCopy(device, 0, on_device.bytes(), *payload.bytes));
  RETURN_ERROR(device->CopyToHost(&found, found_on_device, sizeof(found)));
  RETURN_ERROR(UniformEncodeError(device, x, spec, found));
  if (spec.range == Range::kFixedPoint && found.varies == 0) {
    std::array<uint8_t, kConstantTensorBytes> constant;
    WriteConstant(found.constant, constant.data());
    *payload.bytes = kConstantTensorBytes;
    RETURN_ERROR(payload.Put(device, 0, constant));
    return device->Finish();
  }
  return Error{};
}

Error CudaUniformDecode(CudaDevice* device, const PayloadSource& payload, const CodecSpec& spec,
                        const KernelContext& /*context*/, const TensorView& x) {
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  std::array<uint8_t, kConstantTensorBytes> front = {};
  if (spec.range == Range::kFixedPoint) {
    const size_t front_bytes = std::min(payload.bytes, front.size());
    RETURN_ERROR(payload.Read(device, 0, front_bytes, front.data()));
  }
  if (IsConstant(spec, scopes, front.data(), payload.bytes)) {
    return DecodeConstant(device, front.data(), x);
  }
  RETURN_ERROR(CheckPayloadBytes("uniform", payload.bytes, UniformPayloadBytes(spec, scopes)));
  RETURN_ERROR(CheckExponent(spec, front.data()));
  if (scopes.count == 0) return Error{};
  DevicePayload on_device(device);
  RETURN_ERROR(on_device.Reserve(UniformHeaderBytes(spec, scopes), payload.bytes));
  CudaScratch found(device);
  RETURN_ERROR(found.ReserveZeros(sizeof(uint32_t)));
  RETURN_ERROR(payload.SubmitCopy(device, 0, payload.bytes, on_device.bytes()));
  RETURN_ERROR(SubmitUniformDecode(device, on_device.bytes(), spec, x, found.as<uint32_t>()));
  uint32_t refused = 0;
  RETURN_ERROR(device->CopyToHost(&refused, found.as<void>(), sizeof(refused)));
  if (refused != 0) return PayloadSource::Refused();
  uint8_t last_byte = 0;
  RETURN_ERROR(payload.Read(device, payload.bytes - 1, &last_byte));
  return CheckLastByte(last_byte, spec, scopes.total);
}

}  // namespace thinwire
