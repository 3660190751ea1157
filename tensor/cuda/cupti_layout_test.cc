// Holds our account of CUPTI's records against its headers, when it is compiled.
#include "tensor/cuda/cupti_layout.h"

#include <cupti.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

#define EXPECT_SAME_PLACE(OURS, FIELD, THEIRS, THEIR_FIELD)                      \
  static_assert(offsetof(cupti::OURS, FIELD) == offsetof(THEIRS, THEIR_FIELD) && \
                    sizeof(cupti::OURS::FIELD) >= sizeof(THEIRS::THEIR_FIELD),   \
                #OURS "::" #FIELD)

EXPECT_SAME_PLACE(KernelRecord, kind, CUpti_ActivityKernel10, kind);
EXPECT_SAME_PLACE(KernelRecord, start, CUpti_ActivityKernel10, start);
EXPECT_SAME_PLACE(KernelRecord, end, CUpti_ActivityKernel10, end);
EXPECT_SAME_PLACE(KernelRecord, stream, CUpti_ActivityKernel10, streamId);
EXPECT_SAME_PLACE(KernelRecord, grid, CUpti_ActivityKernel10, gridX);
EXPECT_SAME_PLACE(KernelRecord, name, CUpti_ActivityKernel10, name);
EXPECT_SAME_PLACE(MemcpyRecord, copy_kind, CUpti_ActivityMemcpy6, copyKind);
EXPECT_SAME_PLACE(MemcpyRecord, bytes, CUpti_ActivityMemcpy6, bytes);
EXPECT_SAME_PLACE(MemcpyRecord, start, CUpti_ActivityMemcpy6, start);
EXPECT_SAME_PLACE(MemcpyRecord, end, CUpti_ActivityMemcpy6, end);
EXPECT_SAME_PLACE(MemcpyRecord, stream, CUpti_ActivityMemcpy6, streamId);
EXPECT_SAME_PLACE(MemcpyRecord, copy_kind, CUpti_ActivityMemcpyPtoP4, copyKind);
EXPECT_SAME_PLACE(MemcpyRecord, bytes, CUpti_ActivityMemcpyPtoP4, bytes);
EXPECT_SAME_PLACE(MemcpyRecord, start, CUpti_ActivityMemcpyPtoP4, start);
EXPECT_SAME_PLACE(MemcpyRecord, end, CUpti_ActivityMemcpyPtoP4, end);
EXPECT_SAME_PLACE(MemcpyRecord, stream, CUpti_ActivityMemcpyPtoP4, streamId);
EXPECT_SAME_PLACE(MemsetRecord, bytes, CUpti_ActivityMemset4, bytes);
EXPECT_SAME_PLACE(MemsetRecord, start, CUpti_ActivityMemset4, start);
EXPECT_SAME_PLACE(MemsetRecord, end, CUpti_ActivityMemset4, end);
EXPECT_SAME_PLACE(MemsetRecord, stream, CUpti_ActivityMemset4, streamId);

TEST(CuptiLayoutTest, HasCuptisNumbers) {
  EXPECT_EQ(int{cupti::kSuccess}, int{CUPTI_SUCCESS});
  EXPECT_EQ(int{cupti::kEndOfBuffer}, int{CUPTI_ERROR_MAX_LIMIT_REACHED});
  EXPECT_EQ(int{cupti::kMemcpy}, int{CUPTI_ACTIVITY_KIND_MEMCPY});
  EXPECT_EQ(int{cupti::kMemcpy2}, int{CUPTI_ACTIVITY_KIND_MEMCPY2});
  EXPECT_EQ(int{cupti::kMemset}, int{CUPTI_ACTIVITY_KIND_MEMSET});
  EXPECT_EQ(int{cupti::kConcurrentKernel}, int{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  EXPECT_EQ(int{cupti::kHostToDevice}, int{CUPTI_ACTIVITY_MEMCPY_KIND_HTOD});
  EXPECT_EQ(int{cupti::kDeviceToHost}, int{CUPTI_ACTIVITY_MEMCPY_KIND_DTOH});
  EXPECT_EQ(int{cupti::kBetweenDevices}, int{CUPTI_ACTIVITY_MEMCPY_KIND_PTOP});
  EXPECT_EQ(int{cupti::kFlushForced}, int{CUPTI_ACTIVITY_FLAG_FLUSH_FORCED});
  EXPECT_EQ(cupti::kRecordAlignment, size_t{ACTIVITY_RECORD_ALIGNMENT});
}

}  // namespace
}  // namespace thinwire
