#include "base/byte_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace thinwire {
namespace {

using ::testing::HasSubstr;

TEST(ByteSizeTest, UnitsArePowersOf1000Or1024) {
  EXPECT_EQ(*ParseByteSize("12GiB"), 12ULL << 30);
  EXPECT_EQ(*ParseByteSize("500MB"), 500000000u);
  EXPECT_EQ(*ParseByteSize("1.5 kB"), 1500u);
  EXPECT_EQ(*ParseByteSize("800"), 800u);
  EXPECT_EQ(*ParseByteSize("1TiB"), 1ULL << 40);
}

TEST(ByteSizeTest, WhatIsNoSizeIsRefusedWithItsText) {
  for (const std::string text : {"", "GiB", "12gib", "12 GiB left", "-1GB", "0", "0.5B", "1e9",
                                 "1.2.3", "2000000TiB", "40%"}) {
    const auto size = ParseByteSize(text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_THAT(std::string(size.status().message()),
                HasSubstr("\"" + text + "\", want a number of bytes"));
  }
}

TEST(ByteSizeTest, TextsHaveThreeDigitsAndAUnit) {
  EXPECT_EQ(ByteSizeText(12ULL << 30), "12 GiB");
  EXPECT_EQ(ByteSizeText(1536), "1.5 KiB");
  EXPECT_EQ(ByteSizeText(7), "7 B");
}

}  // namespace
}  // namespace thinwire
