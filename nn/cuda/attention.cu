#include <cmath>
#include <memory>
#include <vector>

#include "nn/attention_checks.h"
#include "nn/cuda/attention.h"
#include "nn/cuda/attention_kernels.cuh"
#include "nn/cuda/preparation.h"
#include "nn/cuda/rows.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {
namespace {

constexpr int64_t kLeastOfLibrary = 64;  // shortest sequence that the library gets, positions

// Sets rotation[t planes + i] to cosine and sine of the angle of position t in plane i.
__global__ void FillRotation(const double* frequencies, int64_t planes, int64_t n,
                             float2* rotation) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= n) return;
  const double angle = static_cast<double>(at / planes) * frequencies[at % planes];
  rotation[at].x = static_cast<float>(cos(angle));
  rotation[at].y = static_cast<float>(sin(angle));
}

// Copies rows to other rows, or rotates them in place.
struct Move {
  HeadRows from, to;
  int64_t batch, positions, heads, head_size;
  const float2* rotation;  // of the first position; null: copy only
  float direction;         // 1 rotates, -1 rotates back
};

// Each thread has one element or, if rows are rotated, the two elements of one plane.
template <typename T>
__global__ void MoveRows(Move a) {
  const int64_t planes = a.head_size / 2, width = a.rotation == nullptr ? a.head_size : planes;
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t row = index / width, i = index % width;
  const int64_t head = row % a.heads, t = row / a.heads % a.positions;
  const int64_t sample = row / a.heads / a.positions;
  if (sample >= a.batch) return;
  const T* const from = a.from.Row<const T>(sample, t, head);
  T* const to = a.to.Row<T>(sample, t, head);
  if (a.rotation == nullptr) {
    to[i] = from[i];
    return;
  }
  const float2 turn = a.rotation[t * planes + i];
  const float x = Load(from + i), y = Load(from + i + planes), sine = a.direction * turn.y;
  Store(x * turn.x - y * sine, to + i);
  Store(y * turn.x + x * sine, to + i + planes);
}

Error Submit(CudaDevice* device, DType type, const Move& move) {
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  const int64_t width = move.rotation == nullptr ? move.head_size : move.head_size / 2;
  const dim3 blocks = BlocksWith(kThreads, move.batch * move.positions * move.heads * width);
  return type == DType::kF32 ? Launch(stream, blocks, dim3(kThreads), MoveRows<float>, move)
                             : Launch(stream, blocks, dim3(kThreads), MoveRows<uint16_t>, move);
}

// Computes means = dy . y, with one warp for each query.
template <typename T>
__global__ void MultiplyByGradient(AttentionTask a, float* means) {
  const RowThread<1> thread;
  const int64_t head = thread.row % a.heads, t = thread.row / a.heads % a.queries;
  const int64_t sample = thread.row / a.heads / a.queries;
  if (sample >= a.batch) return;
  const T* const y = a.y.Row<const T>(sample, t, head);
  const T* const dy = a.dy.Row<const T>(sample, t, head);
  float sum = 0;
  for (int64_t j = thread.index; j < a.head_size; j += thread.kCount) {
    sum = fmaf(Load(y + j), Load(dy + j), sum);
  }
  sum = thread.Reduce<Sum>(sum);
  if (thread.index == 0) means[a.StatisticAt(sample, head, t)] = sum;
}

// Returns the rows of the heads from `first_head` on, of x: [batch, positions, heads head_size].
HeadRows RowsOf(const TensorView& x, int64_t first_head, int64_t head_size) {
  char* const data = static_cast<char*>(x.data);
  const auto offset = first_head * head_size * static_cast<int64_t>(SizeOf(x.dtype));
  return {data == nullptr ? nullptr : data + offset, x.dims[1] * x.dims[2], x.dims[2], head_size};
}

// Returns the rows of part 0 (keys) or 1 (values) of a cache [batch, 2, context, kv_heads,
// head_size], or of its gradients, from position `first_position` on.
HeadRows RowsOfCache(const TensorView& cache, int64_t part, int64_t first_position = 0) {
  const int64_t position = cache.dims[3] * cache.dims[4], of_part = cache.dims[2] * position;
  const auto offset =
      (part * of_part + first_position * position) * static_cast<int64_t>(SizeOf(cache.dtype));
  return {static_cast<char*>(cache.data) + offset, 2 * of_part, position, cache.dims[4]};
}

class CudaAttention final : public Attention {
 public:
  CudaAttention(CudaDevice* device, const AttentionSpec& spec, FusedAttention* fused)
      : device_(device),
        spec_(spec),
        frequencies_(spec.frequencies,
                     spec.frequencies + (spec.frequencies == nullptr ? 0 : spec.head_size / 2)),
        fused_(fused),
        rotation_(device) {}

  Error Forward(const AttentionForward& a) override {
    RETURN_ERROR(CheckDropout(spec_, a.qkv.dims[1]));
    RETURN_ERROR(CheckLengths(spec_, a.lengths));
    RETURN_ERROR(CheckFirstKey(spec_, a.first_key));
    if (a.qkv.elements() == 0) return Error{};
    AttentionTask task = TaskOf(a.qkv, 0, a.first_key);
    task.lengths = a.lengths;
    CudaScratch turned(device_);
    RETURN_ERROR(Turn(a.qkv, &task, &turned));
    task.y = RowsOf(a.y, 0, spec_.head_size);
    task.log_sum_exp = a.log_sum_exp;
    if (a.log_sum_exp != nullptr) {
      task.masks = MasksOf(a.dropout_key, a.first_sample, spec_.dropout);
    }
    const bool suits = SuitTensorCores(a.qkv.data, a.y.data);
    if (suits && IsForLibrary(task)) {
      const Error error = fused_->Forward(task);
      if (!IsUnimplemented(error)) return error;
    }
    return Attend(task, suits);
  }

  Error Backward(const AttentionBackward& a) override {
    RETURN_ERROR(CheckDropout(spec_, a.qkv.dims[1]));
    RETURN_ERROR(CheckLengths(spec_, a.lengths));
    RETURN_ERROR(CheckFirstKey(spec_, a.first_key));
    if (a.qkv.elements() == 0) return Error{};
    AttentionTask task = TaskOf(a.qkv, a.first_position, a.first_key);
    task.lengths = a.lengths;
    CudaScratch turned(device_);
    RETURN_ERROR(Turn(a.qkv, &task, &turned));
    if (a.dcache != nullptr) ReadCache(a.cache, a.dcache, &task);
    task.y = RowsOf(a.y, 0, spec_.head_size);
    task.dy = RowsOf(a.dy, 0, spec_.head_size);
    task.dq = RowsOf(a.dqkv, 0, spec_.head_size);
    task.dk = RowsOf(a.dqkv, spec_.heads, spec_.head_size);
    task.dv = RowsOf(a.dqkv, spec_.heads + spec_.kv_heads, spec_.head_size);
    task.log_sum_exp = const_cast<float*>(a.log_sum_exp);
    task.masks = MasksOf(a.dropout_key, a.first_sample, spec_.dropout);
    RETURN_ERROR(Differentiate(
        &task, SuitTensorCores(a.qkv.data, a.y.data, a.dqkv.data, a.dy.data, a.cache.data)));
    if (!is_rotary()) return Error{};
    const HeadRows gradients = task.dq;  // of what was rotated: queries, then keys
    return Submit(device_, spec_.compute, MoveOf(task, gradients, gradients, turned_heads(), -1));
  }

  Error Continue(const AttentionCached& a) override {
    const int64_t first = a.first_position, end = first + a.qkv.dims[1];
    const int64_t context = a.cache.dims[2];
    RETURN_ERROR(CheckContext(first, end, context));
    RETURN_ERROR(CheckCausal(spec_));
    if (a.log_sum_exp != nullptr) RETURN_ERROR(CheckNoDropout(spec_));
    if (a.qkv.elements() == 0) return Error{};
    AttentionTask task = TaskOf(a.qkv, first, a.first_key);
    CudaScratch turned(device_);
    RETURN_ERROR(Turn(a.qkv, &task, &turned));
    RETURN_ERROR(Submit(device_, spec_.compute,
                        MoveOf(task, task.k, RowsOfCache(a.cache, 0, first), spec_.kv_heads, 0)));
    RETURN_ERROR(Submit(device_, spec_.compute,
                        MoveOf(task, task.v, RowsOfCache(a.cache, 1, first), spec_.kv_heads, 0)));
    ReadCache(a.cache, nullptr, &task);
    task.y = RowsOf(a.y, 0, spec_.head_size);
    task.log_sum_exp = a.log_sum_exp;
    return Attend(task, SuitTensorCores(a.qkv.data, a.y.data, a.cache.data));
  }

 private:
  bool is_rotary() const { return !frequencies_.empty(); }
  int64_t turned_heads() const { return spec_.heads + spec_.kv_heads; }

  // Returns whether the tensors have whole vectors of 16 bytes, as the tensor cores' kernels need.
  template <typename... P>
  bool SuitTensorCores(const P*... tensors) const {
    const int64_t size = spec_.head_size;
    return spec_.compute == DType::kBF16 && (size == 32 || size == 64 || size == 128) &&
           AreAligned(tensors...);
  }
  // Returns whether the library may compute a task that suits tensor cores. Short sequences are not
  // worth a plan each.
  bool IsForLibrary(const AttentionTask& task) const {
    return fused_ != nullptr && task.masks.dropped == 0 && task.lengths == nullptr &&
           task.looks_back_freely() && task.first_position == 0 && task.cached_dk.data == nullptr &&
           task.queries >= kLeastOfLibrary;
  }
  Error Attend(const AttentionTask& task, bool suits_tensor_cores) {
    return suits_tensor_cores ? AttendOnTensorCores(device_, task) : AttendByTiles(device_, task);
  }
  Error Differentiate(AttentionTask* task, bool suits_tensor_cores) {
    if (suits_tensor_cores && IsForLibrary(*task)) {
      const Error error = fused_->Backward(*task);
      if (!IsUnimplemented(error)) return error;
    }
    CudaScratch means(device_);
    RETURN_ERROR(MakeMeans(task, &means));
    return suits_tensor_cores ? DifferentiateOnTensorCores(device_, *task)
                              : DifferentiateByTiles(device_, *task);
  }

  AttentionTask TaskOf(const TensorView& qkv, int64_t first_position,
                       const int32_t* first_key) const {
    AttentionTask task;
    task.first_position = first_position;
    task.first_key = first_key;
    task.type = spec_.compute;
    task.batch = qkv.dims[0];
    task.heads = spec_.heads;
    task.first_head = spec_.first_head;
    task.kv_heads = spec_.kv_heads;
    task.head_size = spec_.head_size;
    task.queries = qkv.dims[1];
    task.causal = spec_.causal;
    if (spec_.window < task.keys()) task.window = spec_.window;
    task.scale = 1.0f / std::sqrt(static_cast<float>(spec_.head_size));
    task.q = RowsOf(qkv, 0, spec_.head_size);
    task.k = RowsOf(qkv, spec_.heads, spec_.head_size);
    task.v = RowsOf(qkv, spec_.heads + spec_.kv_heads, spec_.head_size);
    return task;
  }

  // Makes the task read keys and values, those of earlier positions included, from the cache.
  static void ReadCache(const TensorView& cache, float* dcache, AttentionTask* task) {
    task->k = RowsOfCache(cache, 0);
    task->v = RowsOfCache(cache, 1);
    if (dcache == nullptr) return;
    TensorView gradients = cache;
    gradients.data = dcache;
    gradients.dtype = DType::kF32;
    task->cached_dk = RowsOfCache(gradients, 0);
    task->cached_dv = RowsOfCache(gradients, 1);
  }

  // Returns a move of `heads` heads at the task's positions that rotates them (1), rotates them
  // back (-1) or only copies them (0).
  Move MoveOf(const AttentionTask& task, const HeadRows& from, const HeadRows& to, int64_t heads,
              int direction) const {
    const float2* const rotation =
        direction == 0 ? nullptr
                       : rotation_.as<float2>() + task.first_position * (spec_.head_size / 2);
    return {from,       to,
            task.batch, task.queries,
            heads,      spec_.head_size,
            rotation,   static_cast<float>(direction)};
  }

  // If positions are rotary, writes rotated queries and keys of qkv to `copy` and makes the task
  // use them.
  Error Turn(const TensorView& qkv, AttentionTask* task, CudaScratch* copy) {
    if (!is_rotary()) return Error{};
    RETURN_ERROR(MakeRotation(task->first_position + task->queries));
    TensorView turned = qkv;
    turned.dims[2] = turned_heads() * spec_.head_size;
    RETURN_ERROR(copy->Reserve(static_cast<size_t>(turned.elements()) * SizeOf(spec_.compute)));
    turned.data = copy->as<void>();
    const HeadRows from = task->q;
    task->q = RowsOf(turned, 0, spec_.head_size);
    task->k = RowsOf(turned, spec_.heads, spec_.head_size);
    return Submit(device_, spec_.compute, MoveOf(*task, from, task->q, turned_heads(), 1));
  }

  Error MakeMeans(AttentionTask* task, CudaScratch* means) {
    cudaStream_t stream;
    RETURN_ERROR(device_->Stream(&stream));
    const int64_t rows = task->batch * task->heads * task->queries;
    RETURN_ERROR(means->Reserve(static_cast<size_t>(rows) * sizeof(float)));
    task->means = means->as<float>();
    const dim3 blocks = BlocksWith(kWarps, rows);
    return spec_.compute == DType::kF32
               ? Launch(stream, blocks, dim3(kThreads), MultiplyByGradient<float>, *task,
                        means->as<float>())
               : Launch(stream, blocks, dim3(kThreads), MultiplyByGradient<uint16_t>, *task,
                        means->as<float>());
  }

  // Fills the table for positions below `n`. A recording never needs more than the passes before
  // it.
  Error MakeRotation(int64_t n) {
    if (n <= rotated_) return Error{};
    cudaStream_t stream;
    RETURN_ERROR(device_->Stream(&stream));
    const auto planes = static_cast<int64_t>(frequencies_.size());
    const size_t bytes = frequencies_.size() * sizeof(double);
    CudaScratch frequencies(device_);
    RETURN_ERROR(frequencies.Reserve(bytes));
    RETURN_ERROR(device_->SubmitCopyFromHost(frequencies.as<void>(), frequencies_.data(), bytes));
    rotated_ = 0;
    RETURN_ERROR(rotation_.Reserve(static_cast<size_t>(n * planes) * sizeof(float2)));
    RETURN_ERROR(Launch(stream, BlocksWith(kThreads, n * planes), dim3(kThreads), FillRotation,
                        frequencies.as<double>(), planes, n * planes, rotation_.as<float2>()));
    rotated_ = n;
    return Error{};
  }

  CudaDevice* const device_;
  const AttentionSpec spec_;
  const std::vector<double> frequencies_;
  FusedAttention* const fused_;  // null: no library
  CudaScratch rotation_;
  int64_t rotated_ = 0;  // positions in `rotation_`
};

}  // namespace

Error NewAttention(CudaDevice* device, const AttentionSpec& spec, FusedAttention* fused,
                   Attention** attention) {
  *attention = new CudaAttention(device, spec, fused);
  return Error{};
}

}  // namespace thinwire::cuda
