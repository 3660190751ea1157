// Runs as on a processor without AVX512-BF16. It is a separate program, as oneDNN's limit holds for
// a process.
#include <gtest/gtest.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <string>

#include "nn/cpu/ops.h"

namespace thinwire {
namespace {

TEST(WithoutBF16Test, TheErrorNamesTheMissingFeature) {
  ASSERT_EQ(dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2), dnnl::status::success);
  const auto ops = NewCpuOps(1);
  Linear* linear = nullptr;
  LinearSpec spec;
  spec.in_features = spec.out_features = 2;
  spec.compute = DType::kBF16;
  for (const Error& error : {ops->CheckComputeType(DType::kBF16), ops->NewLinear(spec, &linear)}) {
    EXPECT_EQ(ToStatus(error).code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(std::string(error.message).find("AVX512-BF16"), std::string::npos) << error.message;
  }
  EXPECT_EQ(linear, nullptr);
  EXPECT_TRUE(ops->CheckComputeType(DType::kF32).ok());
}

}  // namespace
}  // namespace thinwire
