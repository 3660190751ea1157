#include "base/memory_errors.h"

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(MemoryErrorsAsStatusTest, PassesResultsOn) {
  EXPECT_EQ(*MemoryErrorsAsStatus([]() -> absl::StatusOr<int> { return 7; }), 7);
  EXPECT_EQ(MemoryErrorsAsStatus([] { return absl::DataLossError("cut"); }),
            absl::DataLossError("cut"));
}

TEST(MemoryErrorsAsStatusTest, LackOfMemoryIsAnError) {
  const auto huge = []() -> absl::Status { return absl::UnknownError(std::string(SIZE_MAX, 'x')); };
  EXPECT_EQ(MemoryErrorsAsStatus(huge).code(), absl::StatusCode::kResourceExhausted);
  const auto none = []() -> absl::StatusOr<int> { throw std::bad_alloc(); };
  EXPECT_EQ(MemoryErrorsAsStatus(none).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace thinwire
