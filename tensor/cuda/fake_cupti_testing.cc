// A CUPTI that pretends to have recorded a GPU. Between the enabling of kernels and a flush, on its
// clock, it has by quarters: a kernel on stream 7; a copy to the device on 7 and one to another
// device on 21 beside a kernel on 13; a clearing on 7; a copy to the host on 7. One more kernel has
// not ended.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "tensor/cuda/cupti_layout.h"

namespace {

using namespace thinwire::cupti;  // NOLINT: it is that library

constexpr int kUnknown = 999;
constexpr int64_t kEpoch = 1'700'000'000'000'000'000;

GiveBuffer give_buffer = nullptr;
TakeBuffer take_buffer = nullptr;
uint64_t enabled_at = 0;        // 0: kernels are not recorded
bool has_other_device = false;  // copies between devices are recorded

// Goes by half faster than the monotonic clock.
uint64_t Now() {
  const int64_t steady = std::chrono::duration_cast<std::chrono::nanoseconds>(
                             std::chrono::steady_clock::now().time_since_epoch())
                             .count();
  return static_cast<uint64_t>(kEpoch + steady + steady / 2);
}

// Records of one buffer; CUPTI's differ in size, too, but its reader alone knows how.
struct Records {
  KernelRecord kernels[3] = {};
  MemcpyRecord copies[3] = {};
  MemsetRecord clear = {};
};

KernelRecord Kernel(const char* name, uint32_t stream, uint64_t start, uint64_t end) {
  KernelRecord kernel = {};
  kernel.kind = kConcurrentKernel;
  kernel.name = name;
  kernel.stream = stream;
  kernel.start = start;
  kernel.end = end;
  std::fill(std::begin(kernel.grid), std::end(kernel.grid), 2);
  return kernel;
}

MemcpyRecord Copy(Kind kind, CopyKind copy_kind, uint32_t stream, uint64_t start, uint64_t end) {
  MemcpyRecord copy = {};
  copy.kind = kind;
  copy.copy_kind = copy_kind;
  copy.bytes = 4096;
  copy.stream = stream;
  copy.start = start;
  copy.end = end;
  return copy;
}

Records Recorded(uint64_t begin, uint64_t end) {
  const uint64_t quarter = (end - begin) / 4;
  Records records;
  // void thinwire::(anonymous namespace)::Softmax<float>(float const*)
  records.kernels[0] =
      Kernel("_ZN8thinwire12_GLOBAL__N_17SoftmaxIfEEvPKT_", 7, begin, begin + quarter);
  records.kernels[1] = Kernel("cutlass_gemm", 13, begin + quarter, begin + 2 * quarter);
  records.kernels[2] = Kernel("cutlass_gemm", 13, end, 0);
  records.copies[0] = Copy(kMemcpy, kHostToDevice, 7, begin + quarter, begin + 2 * quarter);
  records.copies[1] = Copy(kMemcpy, kDeviceToHost, 7, begin + 3 * quarter, end);
  if (has_other_device) {
    records.copies[2] = Copy(kMemcpy2, kBetweenDevices, 21, begin + quarter, begin + 2 * quarter);
  }
  records.clear.kind = kMemset;
  records.clear.bytes = 64;
  records.clear.stream = 7;
  records.clear.start = begin + 2 * quarter;
  records.clear.end = begin + 3 * quarter;
  return records;
}

// Returns the record behind `record`, or the first one for null; null behind the last.
Record* Behind(Records* records, const Record* record) {
  Record* const all[] = {reinterpret_cast<Record*>(&records->kernels[0]),
                         reinterpret_cast<Record*>(&records->kernels[1]),
                         reinterpret_cast<Record*>(&records->kernels[2]),
                         reinterpret_cast<Record*>(&records->copies[0]),
                         reinterpret_cast<Record*>(&records->copies[1]),
                         reinterpret_cast<Record*>(&records->copies[2]),
                         reinterpret_cast<Record*>(&records->clear),
                         nullptr};
  if (record == nullptr) return all[0];
  return *std::next(std::find(std::begin(all), std::prev(std::end(all)), record));
}

}  // namespace

extern "C" {

int cuptiGetTimestamp(uint64_t* timestamp) {
  *timestamp = Now();
  return kSuccess;
}

int cuptiActivityRegisterCallbacks(GiveBuffer give, TakeBuffer take) {
  give_buffer = give;
  take_buffer = take;
  return kSuccess;
}

// Refuses where the test has given it no callbacks, and where it is told to.
int cuptiActivityEnable(Kind kind) {
  if (give_buffer == nullptr || std::getenv("THINWIRE_FAKE_CUPTI_REFUSES") != nullptr) {
    return kUnknown;
  }
  if (kind == kConcurrentKernel) enabled_at = Now();
  if (kind == kMemcpy2) has_other_device = true;
  return kSuccess;
}

// Keeps what was recorded for the flush.
int cuptiActivityDisable(Kind /*kind*/) { return kSuccess; }

int cuptiActivityFlushAll(uint32_t /*flags*/) {
  if (enabled_at == 0) return kSuccess;
  uint8_t* buffer = nullptr;
  size_t bytes = 0, most_records = 0;
  give_buffer(&buffer, &bytes, &most_records);
  if (bytes < sizeof(Records)) return kUnknown;
  const Records records = Recorded(enabled_at, Now());
  std::memcpy(buffer, &records, sizeof(records));
  enabled_at = 0;
  has_other_device = false;
  take_buffer(nullptr, 0, buffer, bytes, sizeof(records));
  return kSuccess;
}

int cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid_bytes, Record** record) {
  if (valid_bytes != sizeof(Records)) return kUnknown;
  *record = Behind(reinterpret_cast<Records*>(buffer), *record);
  return *record == nullptr ? kEndOfBuffer : kSuccess;
}

int cuptiActivityGetNumDroppedRecords(void* /*context*/, uint32_t /*stream*/, size_t* dropped) {
  *dropped = 2;
  return kSuccess;
}

int cuptiGetResultString(int /*result*/, const char** text) {
  *text = "CUPTI_ERROR_FAKE";
  return kSuccess;
}

}  // extern "C"
