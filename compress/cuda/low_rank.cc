#include <cuda_runtime.h>

#include <vector>

#include "compress/cuda/codecs.h"
#include "compress/cuda/factors.h"
#include "compress/cuda/kernels.h"
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

// Computes P of every matrix from where it starts.
Error SubmitProjection(CudaDevice* device, const TensorView& x, const LowRankMatrices& m,
                       const float* warm_start, const EncodeMemory& memory) {
  const std::vector<float> start = Start(m, warm_start);
  auto* const extremes = memory.extremes.as<LowRankExtremes>();
  RETURN_ERROR(device->CopyFromHost(memory.start.as<float>(), start.data(), 4 * start.size()));
  RETURN_ERROR(device->SubmitZeros(extremes, m.count * sizeof(*extremes)));
  return MultiplyByFactor(device, x, m, memory.start.as<float>(), memory.p.as<float>(), extremes);
}

// Computes Q from P and behind it in the payloads.
Error SubmitReprojection(CudaDevice* device, const TensorView& x, const LowRankMatrices& m,
                         const EncodeMemory& memory) {
  return MultiplyTransposed(device, x, m, memory.p.as<float>(), memory.partial.as<double>(),
                            memory.payload.as<float>(), memory.extremes.as<LowRankExtremes>());
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
  EncodeMemory memory(device);
  RETURN_ERROR(memory.Reserve(m));
  RETURN_ERROR(SubmitProjection(device, x, m, context.warm_start, memory));
  float* const p = memory.p.as<float>();
  RETURN_ERROR(Orthonormalise(device, p, m.count, m.rank, m.rows));
  RETURN_ERROR(StoreFactor(device, m, p, memory.payload.as<float>()));
  RETURN_ERROR(SubmitReprojection(device, x, m, memory));
  std::vector<LowRankExtremes> extremes(m.count);
  RETURN_ERROR(device->CopyToHost(extremes.data(), memory.extremes.as<LowRankExtremes>(),
                                  m.count * sizeof(LowRankExtremes)));
  RETURN_ERROR(CheckExtremes(device, x, m.rank, extremes));
  RETURN_ERROR(payload.SubmitCopy(device, 0, memory.payload.as<float>(), *payload.bytes));
  return device->Finish();
}

Error CudaKernels::Project(const CodecSpec& spec, const TensorView& x, const float* start, float* p,
                           float* largest) {
  *largest = 0;
  LowRankMatrices m;
  RETURN_ERROR(LowRankMatrixOf(x, spec, &m));
  if (m.count == 0) return Error{};
  EncodeMemory memory(device_);
  RETURN_ERROR(memory.Reserve(m));
  RETURN_ERROR(SubmitProjection(device_, x, m, start, memory));
  RETURN_ERROR(StoreFactor(device_, m, memory.p.as<float>(), memory.payload.as<float>()));
  std::vector<LowRankExtremes> extremes(1);
  RETURN_ERROR(device_->CopyToHost(extremes.data(), memory.extremes.as<LowRankExtremes>(),
                                   sizeof(LowRankExtremes)));
  RETURN_ERROR(CheckExtremes(device_, x, m.rank, extremes));
  RETURN_ERROR(device_->CopyToHost(p, memory.payload.as<float>(), 4 * m.p_floats()));
  *largest = FloatOf(extremes[0].matrix);
  return DropLowRankLift(LowRankLift(extremes[0].matrix), m, p);
}

Error CudaKernels::Reproject(const CodecSpec& spec, const TensorView& x, float largest,
                             const float* p, float* q) {
  LowRankMatrices m;
  RETURN_ERROR(LowRankMatrixOf(x, spec, &m));
  if (m.count == 0) return Error{};
  std::vector<float> columns(m.p_floats());
  for (int64_t i = 0; i < m.p_floats(); ++i) columns[i % m.rank * m.rows + i / m.rank] = p[i];
  std::vector<LowRankExtremes> extremes = {{BitsOf(largest), 0}};
  EncodeMemory memory(device_);
  RETURN_ERROR(memory.Reserve(m));
  auto* const of_matrix = memory.extremes.as<LowRankExtremes>();
  RETURN_ERROR(device_->CopyFromHost(of_matrix, extremes.data(), sizeof(LowRankExtremes)));
  RETURN_ERROR(device_->CopyFromHost(memory.p.as<float>(), columns.data(), 4 * columns.size()));
  RETURN_ERROR(SubmitReprojection(device_, x, m, memory));
  RETURN_ERROR(device_->CopyToHost(extremes.data(), of_matrix, sizeof(LowRankExtremes)));
  RETURN_ERROR(CheckExtremes(device_, x, m.rank, extremes));
  return device_->CopyToHost(q, memory.payload.as<float>() + m.p_floats(), 4 * m.q_floats());
}

Error CudaLowRankDecode(CudaDevice* device, const PayloadSource& payload, const CodecSpec& spec,
                        const KernelContext& /*context*/, const TensorView& x) {
  LowRankMatrices m;
  RETURN_ERROR(LowRankMatricesOf(x, spec, &m));
  RETURN_ERROR(CheckPayloadBytes("low_rank", payload.bytes, m.count * m.payload_bytes()));
  if (payload.bytes == 0) return Error{};
  CudaScratch factors(device), q(device), nonfinite(device);
  RETURN_ERROR(factors.Reserve(payload.bytes));
  RETURN_ERROR(q.Reserve(4 * m.count * m.q_floats()));
  RETURN_ERROR(nonfinite.ReserveZeros(sizeof(uint32_t)));
  RETURN_ERROR(payload.SubmitCopy(device, 0, payload.bytes, factors.as<float>()));
  RETURN_ERROR(
      MultiplyFactors(device, factors.as<float>(), m, q.as<float>(), x, nonfinite.as<uint32_t>()));
  uint32_t is_nonfinite = 0;
  RETURN_ERROR(device->CopyToHost(&is_nonfinite, nonfinite.as<uint32_t>(), sizeof(uint32_t)));
  return is_nonfinite == 0 ? Error{} : PayloadSource::Refused();
}

}  // namespace thinwire
