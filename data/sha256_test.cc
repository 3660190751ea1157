#include "data/sha256.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

TEST(Sha256Test, IsThatOfTheStandard) {  // FIPS 180-2, appendix B
  EXPECT_EQ(Sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace thinwire
