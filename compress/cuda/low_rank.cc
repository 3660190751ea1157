#include <cuda_runtime.h>

#include <vector>

#include "compress/cuda/codecs.h"
#include "compress/cuda/factors.h"
#include "compress/cuda/nonfinite.h"
#include "compress/cuda/orthonormal.h"
#include "compress/low_rank_matrices.h"
#include "compress/refusals.h"
#include "tensor/cuda/error.h"

namespace thinwire {
namespace {

// Returns where every matrix starts, [count, rank, columns].
std::vector<float> Start(const LowRankMatrices& m, const float* warm_start) {
  std::vector<float> start(m.count * m.q_floats());
  for (int64_t column = 0; column < m.count * m.rank; ++column) {
    const int64_t matrix = column / m.rank;
    const float* const from = warm_start == nullptr ? nullptr : warm_start + matrix * m.q_floats();
    LowRankStartColumn(from, m.columns, m.rank, column % m.rank, start.data() + column * m.columns);
  }
  return start;
}

// Device memory of one encoding.
struct EncodeMemory {
  explicit EncodeMemory(CudaDevice* device)
      : start(device), p(device), partial(device), payload(device), extremes(device) {}

  Error Reserve(const LowRankMatrices& m) {
    RETURN_ERROR(start.Reserve(4 * m.count * m.q_floats()));
    RETURN_ERROR(p.Reserve(4 * m.count * m.p_floats()));
    RETURN_ERROR(partial.Reserve(8 * m.count * TransposedParts(m) * m.q_floats()));
    RETURN_ERROR(payload.Reserve(m.count * m.payload_bytes()));
    return extremes.Reserve(m.count * sizeof(LowRankExtremes));
  }

  CudaScratch start, p, partial, payload, extremes;
};

Error Submit(cudaStream_t stream, const TensorView& x, const LowRankMatrices& m,
             const EncodeMemory& memory) {
  auto* const extremes = memory.extremes.as<LowRankExtremes>();
  float* const p = memory.p.as<float>();
  float* const payload = memory.payload.as<float>();
  CUDA_RETURN_IF_ERROR(cudaMemsetAsync(extremes, 0, m.count * sizeof(*extremes), stream));
  RETURN_ERROR(MultiplyByFactor(stream, x, m, memory.start.as<float>(), p, extremes));
  RETURN_ERROR(Orthonormalise(stream, p, m.count, m.rank, m.rows));
  RETURN_ERROR(StoreFactor(stream, m, p, payload));
  return MultiplyTransposed(stream, x, m, p, memory.partial.as<double>(), payload, extremes);
}

// Returns the error that the extremes of the matrices mean, if any.
Error CheckExtremes(CudaDevice* device, const TensorView& x, int64_t rank,
                    const std::vector<LowRankExtremes>& extremes) {
  for (const LowRankExtremes& of_matrix : extremes) {
    if (of_matrix.matrix >= kInfinityBits) return CudaNonFiniteError(device, "low_rank", x);
    RETURN_ERROR(CheckLowRankFactor(FloatOf(of_matrix.factor), rank));
  }
  return Error{};
}

}  // namespace

Error CudaLowRankEncode(CudaDevice* device, const CodecSpec& spec, const TensorView& x,
                        const KernelContext& context, const PayloadTarget& payload) {
  LowRankMatrices m;
  RETURN_ERROR(LowRankMatricesOf(x, spec, &m));
  *payload.bytes = m.count * m.payload_bytes();
  RETURN_ERROR(CheckCapacity("low_rank", payload.capacity, *payload.bytes));
  if (*payload.bytes == 0) return Error{};
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  EncodeMemory memory(device);
  RETURN_ERROR(memory.Reserve(m));
  const std::vector<float> start = Start(m, context.warm_start);
  RETURN_ERROR(device->CopyFromHost(memory.start.as<float>(), start.data(), 4 * start.size()));
  RETURN_ERROR(Submit(stream, x, m, memory));
  std::vector<LowRankExtremes> extremes(m.count);
  RETURN_ERROR(device->CopyToHost(extremes.data(), memory.extremes.as<LowRankExtremes>(),
                                  m.count * sizeof(LowRankExtremes)));
  RETURN_ERROR(CheckExtremes(device, x, m.rank, extremes));
  RETURN_ERROR(payload.SubmitCopy(device, 0, memory.payload.as<float>(), *payload.bytes));
  return device->Finish();
}

Error CudaLowRankDecode(CudaDevice* device, const PayloadSource& payload, const CodecSpec& spec,
                        const KernelContext& /*context*/, const TensorView& x) {
  LowRankMatrices m;
  RETURN_ERROR(LowRankMatricesOf(x, spec, &m));
  RETURN_ERROR(CheckPayloadBytes("low_rank", payload.bytes, m.count * m.payload_bytes()));
  if (payload.bytes == 0) return Error{};
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  CudaScratch factors(device), q(device), nonfinite(device);
  RETURN_ERROR(factors.Reserve(payload.bytes));
  RETURN_ERROR(q.Reserve(4 * m.count * m.q_floats()));
  RETURN_ERROR(nonfinite.Reserve(sizeof(uint32_t)));
  RETURN_ERROR(payload.SubmitCopy(device, 0, payload.bytes, factors.as<float>()));
  CUDA_RETURN_IF_ERROR(cudaMemsetAsync(nonfinite.as<uint32_t>(), 0, sizeof(uint32_t), stream));
  RETURN_ERROR(
      MultiplyFactors(stream, factors.as<float>(), m, q.as<float>(), x, nonfinite.as<uint32_t>()));
  uint32_t is_nonfinite = 0;
  RETURN_ERROR(device->CopyToHost(&is_nonfinite, nonfinite.as<uint32_t>(), sizeof(uint32_t)));
  return is_nonfinite == 0 ? Error{} : LowRankNonFinitePayload();
}

}  // namespace thinwire
