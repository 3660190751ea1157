#include "base/listening_sockets.h"

#include <string>

#include "base/loopback_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

TEST(ListenAtTest, AnAddressOfEitherKindIsServedAlone) {
  const auto four = ListenAt({"127.0.0.1", 0});
  ASSERT_TRUE(four.ok()) << four.status();
  EXPECT_GT(four->port, 0);
  EXPECT_TRUE(Answers("127.0.0.1", four->port));
  EXPECT_FALSE(Answers("::1", four->port));
  if (!HasLoopback6()) GTEST_SKIP() << "this machine has no ::1";
  const auto six = ListenAt({"::1", 0});
  ASSERT_TRUE(six.ok()) << six.status();
  EXPECT_TRUE(Answers("::1", six->port));
  EXPECT_FALSE(Answers("127.0.0.1", six->port));
}

TEST(ListenAtTest, EveryAddressIsOfBothKinds) {
  for (const char* host : {"0.0.0.0", "::", "*"}) {
    const auto every = ListenAt({host, 0});
    ASSERT_TRUE(every.ok()) << host << ": " << every.status();
    EXPECT_TRUE(Answers("127.0.0.1", every->port)) << host;
    EXPECT_EQ(Answers("::1", every->port), HasLoopback6()) << host;
  }
}

TEST(ListenAtTest, ANameIsServed) {
  const auto local = ListenAt({"localhost", 0});
  ASSERT_TRUE(local.ok()) << local.status();
  EXPECT_TRUE(Answers("localhost", local->port));
}

TEST(ListenAtTest, SaysWhyNot) {
  const auto first = ListenAt({"127.0.0.1", 0});
  ASSERT_TRUE(first.ok()) << first.status();
  for (const char* host : {"127.0.0.1", "localhost", "*"}) {
    EXPECT_EQ(ListenAt({host, first->port}).status(),
              absl::UnavailableError("Address already in use"))
        << host;
  }
  EXPECT_THAT(std::string(ListenAt({"nowhere.invalid", 0}).status().message()),
              HasSubstr("not known"));
  EXPECT_EQ(ListenAt({"192.0.2.1", 0}).status(),
            absl::UnavailableError("Cannot assign requested address"));
}

}  // namespace
}  // namespace thinwire
