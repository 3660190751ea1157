#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <set>

#include "tensor/cpu/device.h"
#include "tensor/host_pool.h"

namespace thinwire {
namespace {

TEST(TensorTest, ItsViewTellsShapeTypeAndMemory) {
  const Tensor tensor = *Tensor::Allocate(CpuDevice(), DType::kBF16, {2, 3});
  const TensorView view = tensor.view();
  EXPECT_EQ(view.rank, 2);
  EXPECT_EQ(view.dims[1], 3);
  EXPECT_EQ(view.elements(), 6);
  EXPECT_EQ(view.dtype, DType::kBF16);
  EXPECT_EQ(view.data, tensor.data());
  EXPECT_EQ(tensor.bytes(), 12u);
}

TEST(DTypeTest, EveryTypeHasItsSizeAndName) {
  EXPECT_EQ(SizeOf(DType::kF32), 4u);
  EXPECT_EQ(SizeOf(DType::kBF16), 2u);
  EXPECT_EQ(SizeOf(DType::kF16), 2u);
  EXPECT_EQ(SizeOf(DType::kI32), 4u);
  EXPECT_STREQ(Name(DType::kBF16), "bf16");
  EXPECT_STREQ(Name(DType::kI32), "int32");
}

TEST(BufferTest, WrappedMemoryKeepsItsOwner) {
  auto owner = std::make_shared<std::array<float, 4>>();
  std::weak_ptr<std::array<float, 4>> alive = owner;
  Tensor tensor(Buffer::Wrap(CpuDevice(), owner->data(), 16, owner), DType::kF32, {4});
  owner.reset();
  EXPECT_FALSE(alive.expired());
  tensor = Tensor();
  EXPECT_TRUE(alive.expired());
}

TEST(CpuDeviceTest, CopiesOfNothingNeedNoMemory) {
  EXPECT_TRUE(CpuDevice()->CopyFromHost(nullptr, nullptr, 0).ok());
  EXPECT_TRUE(CpuDevice()->CopyToHost(nullptr, nullptr, 0).ok());
}

TEST(CpuDeviceTest, AFreedBlockIsUsedAgain) {
  const size_t before = CpuDevice()->bytes_in_use();
  void* first = nullptr;
  ASSERT_TRUE(CpuDevice()->Allocate(100000, &first).ok());
  EXPECT_GE(CpuDevice()->bytes_in_use(), before + 100000);
  CpuDevice()->Free(first);
  EXPECT_EQ(CpuDevice()->bytes_in_use(), before);
  void* second = nullptr;
  ASSERT_TRUE(CpuDevice()->Allocate(100001, &second).ok());
  EXPECT_EQ(first, second);
  CpuDevice()->Free(second);
}

class CountingPool final : public HostPool {
 public:
  const char* name() const override { return "counting"; }
  std::set<void*> blocks;

 private:
  void* Obtain(size_t bytes) override {
    return *blocks.insert(std::aligned_alloc(kAlignment, bytes)).first;
  }
  void Return(void* memory) override {
    blocks.erase(memory);
    std::free(memory);
  }
};

TEST(HostPoolTest, TrimGivesBackWhatNobodyUses) {
  CountingPool pool;
  void *used = nullptr, *small = nullptr, *large = nullptr;
  for (void** memory : {&used, &small}) ASSERT_TRUE(pool.Allocate(100, memory).ok());
  ASSERT_TRUE(pool.Allocate(100000, &large).ok());
  pool.Free(small);
  pool.Free(large);
  EXPECT_EQ(pool.blocks.size(), 3u);
  pool.Trim();
  EXPECT_EQ(pool.blocks, std::set<void*>{used});
  ASSERT_TRUE(pool.Allocate(100, &small).ok());
  pool.Free(small);
  pool.Free(used);
  pool.Trim();
  EXPECT_TRUE(pool.blocks.empty());
}

TEST(CpuDeviceTest, SaysWhatItCouldNotAllocate) {
  void* memory = nullptr;
  const Error error = CpuDevice()->Allocate(size_t{1} << 60, &memory);
  EXPECT_EQ(ToStatus(error).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(std::string(error.message).find("1152921504606846976"), std::string::npos);
}

}  // namespace
}  // namespace thinwire
