#include "base/annotated.h"

#include <memory>
#include <utility>

#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(AnnotatedTest, AnErrorSaysWhereAndKeepsItsCode) {
  EXPECT_EQ(Annotated(absl::DataLossError("cut short"), "a.bin"),
            absl::DataLossError("a.bin: cut short"));
  EXPECT_EQ(Annotated(absl::StatusOr<int>(absl::NotFoundError("no file")), "init").status(),
            absl::NotFoundError("init: no file"));
}

TEST(AnnotatedTest, OkAndValuesPass) {
  EXPECT_EQ(Annotated(absl::OkStatus(), "init"), absl::OkStatus());
  absl::StatusOr<std::unique_ptr<int>> seven = std::make_unique<int>(7);
  EXPECT_EQ(**Annotated(std::move(seven), "init"), 7);
}

}  // namespace
}  // namespace thinwire
