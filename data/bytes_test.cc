#include "data/bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(BytesTest, AnIdIsTheValueOfItsByte) {
  EXPECT_THAT(*Bytes().Encode("a\xFFö"), ElementsAre(97, 255, 0xC3, 0xB6));
  EXPECT_EQ(*Bytes().Decode({97, 255, 0xC3, 0xB6}), "a\xFFö");
}

TEST(BytesTest, AnIdThatNoByteHasIsRefused) {
  for (const int32_t id : {-1, 256}) {
    EXPECT_THAT(std::string(Bytes().Decode({id}).status().message()),
                HasSubstr(absl::StrCat("id ", id, ", want 0 to 255")));
  }
}

}  // namespace
}  // namespace thinwire
