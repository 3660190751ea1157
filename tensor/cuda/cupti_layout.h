// The part of CUPTI 13 (NVIDIA's API reference) that is used here: numbers, and how records begin.
// No build needs its headers so; a test holds this against them where there are such.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thinwire::cupti {

enum Result : int { kSuccess = 0, kEndOfBuffer = 12 };
enum Kind : uint32_t { kMemcpy = 1, kMemset = 2, kConcurrentKernel = 10, kMemcpy2 = 22 };
enum CopyKind : uint8_t { kHostToDevice = 1, kDeviceToHost = 2, kBetweenDevices = 10 };
inline constexpr uint32_t kFlushForced = 1;
inline constexpr size_t kRecordAlignment = 8;

struct Record {
  Kind kind;
};

// Times are in nanoseconds; 0 where there is none.
struct KernelRecord {
  Kind kind;
  uint32_t configuration[3];
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t grid[3], block[3];
  uint32_t memory[4], correlation;
  int64_t grid_id;
  const char* name;  // the linker's
};

// Records of kMemcpy and, for copies between two devices, of kMemcpy2 begin alike.
struct MemcpyRecord {
  Kind kind;
  CopyKind copy_kind;
  uint8_t details[3];
  uint64_t bytes, start, end;
  uint32_t device, context, stream;
};

struct MemsetRecord {
  Kind kind;
  uint32_t value;
  uint64_t bytes, start, end;
  uint32_t device, context, stream;
};

using GiveBuffer = void (*)(uint8_t** buffer, size_t* bytes, size_t* most_records);
using TakeBuffer = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t bytes,
                            size_t valid_bytes);

}  // namespace thinwire::cupti
