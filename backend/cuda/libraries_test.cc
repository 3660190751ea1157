#include "backend/cuda/libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

// Needs the libraries, but no GPU.
TEST(ArithmeticLibrariesTest, AreNamedWithTheirVersions) {
  EXPECT_THAT(ArithmeticLibraries(),
              testing::MatchesRegex("cuDNN 9[.][0-9]+[.][0-9]+, (NVRTC [0-9]+[.][0-9]+|no NVRTC), "
                                    "cuBLAS [0-9]+[.][0-9]+[.][0-9]+"));
}

}  // namespace
}  // namespace thinwire
