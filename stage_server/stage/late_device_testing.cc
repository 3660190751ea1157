#include "stage_server/stage/late_device_testing.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "compress/cpu/kernels.h"
#include "nn/cpu/ops.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

// Work that a thread has submitted and not waited for. It is done at the latest when the thread
// ends.
class Submitted {
 public:
  ~Submitted() { (void)Finish(); }
  void Add(std::function<Error()> work) { work_.push_back(std::move(work)); }
  // Does the work and returns its first error, if any.
  Error Finish() {
    Error first;
    for (const auto& work : std::exchange(work_, {})) {
      const Error error = work();
      if (first.ok()) first = error;
    }
    return first;
  }

 private:
  std::vector<std::function<Error()>> work_;
};

Submitted& OfThisThread() {
  static thread_local Submitted submitted;
  return submitted;
}

class LateDevice final : public Device {
 public:
  const char* name() const override { return "late:0"; }
  bool is_host() const override { return false; }
  Device* host() override { return CpuDevice(); }

  Error Allocate(size_t bytes, void** memory) override {
    const Error error = CpuDevice()->Allocate(bytes, memory);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (error.ok()) blocks_[static_cast<uint8_t*>(*memory)] = bytes;
    return error;
  }
  void Free(void* memory) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      blocks_.erase(static_cast<uint8_t*>(memory));
    }
    OfThisThread().Add([memory] {  // after what this thread still does with it
      CpuDevice()->Free(memory);
      return Error{};
    });
  }
  size_t bytes_in_use() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    size_t bytes = 0;
    for (const auto& [memory, size] : blocks_) bytes += size;
    return bytes;
  }
  void Trim() override { CpuDevice()->Trim(); }

  Error CopyFromHost(void* device, const void* host, size_t bytes) override {
    return Copy(device, host, bytes, /*of_device=*/device, /*of_host=*/host);
  }
  Error CopyToHost(void* host, const void* device, size_t bytes) override {
    return Copy(host, device, bytes, device, host);
  }
  Error Finish() override { return OfThisThread().Finish(); }
  Error NewRecorder(Recorder** /*recorder*/) override {
    return MakeError(absl::StatusCode::kUnimplemented, "late: does not record");
  }
  Error Usage(DeviceUsage* usage) override {
    *usage = DeviceUsage();
    usage->bytes_used = bytes_in_use();
    usage->busy_fraction = 0.5;
    return Error{};
  }

  // Returns whether `memory` lies in a block of this device.
  bool Owns(const void* memory) const {
    const auto* const byte = static_cast<const uint8_t*>(memory);
    const std::lock_guard<std::mutex> lock(mutex_);
    auto after = blocks_.upper_bound(const_cast<uint8_t*>(byte));
    if (after == blocks_.begin()) return false;
    const auto& [begin, size] = *--after;
    return byte < begin + std::max<size_t>(size, 1);
  }

 private:
  Error Copy(void* to, const void* from, size_t bytes, const void* of_device, const void* of_host) {
    const Error error = Finish();
    if (bytes == 0) return error;
    EXPECT_TRUE(Owns(of_device)) << "a copy between two places of the host";
    EXPECT_FALSE(Owns(of_host)) << "a copy between two places of the device";
    std::memcpy(to, from, bytes);
    return error;
  }

  // std: the thread sanitizer sees no order in absl::Mutex (wire/README.md).
  mutable std::mutex mutex_;
  std::map<uint8_t*, size_t> blocks_ ABSL_GUARDED_BY(mutex_);  // in use
};

LateDevice* TheDevice() {
  static LateDevice* const device = new LateDevice;
  return device;
}

void ExpectOnDevice(const TensorView& x) {
  EXPECT_TRUE(x.elements() == 0 || TheDevice()->Owns(x.data)) << "a tensor of the host";
}

void ExpectOnHost(const void* memory) {
  EXPECT_FALSE(TheDevice()->Owns(memory)) << "a payload in the device's memory";
}

// Copies of the rows that a call names, kept until its work is done.
struct KeptRows {
  explicit KeptRows(const RowsView& view, int64_t count) : rows(view) {
    if (view.each != nullptr) each.assign(view.each, view.each + count);
    for (const void* row : each) EXPECT_TRUE(row == nullptr || TheDevice()->Owns(row));
    EXPECT_TRUE(view.data == nullptr || TheDevice()->Owns(view.data));
  }
  RowsView view() {
    if (rows.each != nullptr) rows.each = each.data();
    return rows;
  }
  RowsView rows;
  std::vector<void*> each;
};

// The CPU's kernels, called where and when a device would run them.
class LateKernels final : public CodecKernels {
 public:
  Error Encode(const CodecSpec& spec, const TensorView& x, const KernelContext& context,
               const PayloadBuffer& payload) override {
    ExpectOnDevice(context.support);
    ExpectOnHost(context.warm_start);
    return Now(x, payload.data, [&] { return cpu_->Encode(spec, x, context, payload); });
  }
  Error Decode(const PayloadView& payload, const CodecSpec& spec, const KernelContext& context,
               const TensorView& x) override {
    ExpectOnDevice(context.support);
    return Now(x, payload.data, [&] { return cpu_->Decode(payload, spec, context, x); });
  }
  Error Project(const CodecSpec& spec, const TensorView& x, const float* start, float* p,
                float* largest) override {
    ExpectOnHost(start);
    return Now(x, p, [&] { return cpu_->Project(spec, x, start, p, largest); });
  }
  Error Reproject(const CodecSpec& spec, const TensorView& x, float largest, const float* p,
                  float* q) override {
    ExpectOnHost(p);
    return Now(x, q, [&] { return cpu_->Reproject(spec, x, largest, p, q); });
  }
  Error CastTo(DType wire, const TensorView& x, const PayloadBuffer& payload) override {
    return Now(x, payload.data, [&] { return cpu_->CastTo(wire, x, payload); });
  }
  Error CastFrom(const PayloadView& payload, DType wire, const TensorView& x) override {
    return Now(x, payload.data, [&] { return cpu_->CastFrom(payload, wire, x); });
  }
  Error FindNonzeros(const TensorView& x, uint64_t* words, int64_t* count) override {
    EXPECT_TRUE(TheDevice()->Owns(words)) << "a support in the host's memory";
    return Now(x, nullptr, [&] { return cpu_->FindNonzeros(x, words, count); });
  }
  Error Compare(const TensorView& x, const TensorView& y, Sums* sums) override {
    ExpectOnDevice(y);
    return Now(x, nullptr, [&] { return cpu_->Compare(x, y, sums); });
  }

  Error Compact(const TensorView& x, const SupportView& support,
                const TensorView& compact) override {
    ExpectOnDevice(&support);
    return Later({x, compact}, [=] { return cpu_->Compact(x, support, compact); });
  }
  Error Expand(const TensorView& compact, const SupportView& support,
               const TensorView& x) override {
    ExpectOnDevice(&support);
    return Later({x, compact}, [=] { return cpu_->Expand(compact, support, x); });
  }
  Error Multiply(const TensorView& x, const TensorView& factor, const TensorView& out) override {
    return Later({x, factor, out}, [=] { return cpu_->Multiply(x, factor, out); });
  }
  Error CombineRows(const RowSums& sums) override {
    KeptRows x(sums.x, sums.count), y(sums.y, sums.count), out(sums.out, sums.count),
        also(sums.also, sums.count);
    return Later({}, [=]() mutable {
      RowSums kept = sums;
      kept.x = x.view();
      kept.y = y.view();
      kept.out = out.view();
      kept.also = also.view();
      return cpu_->CombineRows(kept);
    });
  }

 private:
  static void ExpectOnDevice(const TensorView& x) { thinwire::ExpectOnDevice(x); }
  static void ExpectOnDevice(const SupportView* support) {
    if (support == nullptr || support->elements == 0) return;
    EXPECT_TRUE(TheDevice()->Owns(support->words)) << "a support in the host's memory";
  }
  template <typename Work>
  Error Now(const TensorView& x, const void* payload, const Work& work) {
    ExpectOnDevice(x);
    ExpectOnHost(payload);
    const Error error = TheDevice()->Finish();
    return error.ok() ? work() : error;
  }
  Error Later(const std::vector<TensorView>& tensors, std::function<Error()> work) {
    for (const TensorView& x : tensors) ExpectOnDevice(x);
    OfThisThread().Add(std::move(work));
    return Error{};
  }

  CodecKernels* const cpu_ = CpuCodecKernels();
};

}  // namespace

Backend NewLateBackend() {
  static LateKernels* const kernels = new LateKernels;
  Backend backend;
  backend.device = TheDevice();
  backend.kernels = kernels;
  backend.ops = NewCpuOps(/*threads=*/1);
  return backend;
}

}  // namespace thinwire
