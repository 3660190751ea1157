#include "compress/cuda/kept.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "compress/cuda/draws.h"
#include "compress/layout.h"
#include "tensor/cuda/device.h"

namespace thinwire {
namespace {

struct ScopesOfTest {
  int64_t count, elements;
};

CudaDevice* OwnDevice() {
  static CudaDevice* device = nullptr;
  if (device == nullptr) {
    EXPECT_TRUE(NewCudaDevice(/*index=*/0, &device).ok());
  }
  return device;
}

// Scopes for each kernel: registers of a warp, of a block, histograms of many blocks, and those of
// a block per scope.
class KeptTest : public testing::TestWithParam<ScopesOfTest> {
 protected:
  KeptTest() : memory_(OwnDevice()), kept_(OwnDevice()), nonfinite_(OwnDevice()) {}

  // Returns the elements kept, the two largest of each scope. `nonfinite` may be null.
  std::vector<int64_t> Keep(const std::vector<float>& values, uint32_t* nonfinite) {
    const auto total = static_cast<int64_t>(values.size());
    cudaStream_t stream;
    EXPECT_TRUE(OwnDevice()->Stream(&stream).ok());
    EXPECT_TRUE(memory_.Reserve(4 * values.size()).ok());
    EXPECT_TRUE(kept_.Reserve(BitmapBytes(total)).ok());
    EXPECT_TRUE(
        OwnDevice()->CopyFromHost(memory_.as<void>(), values.data(), 4 * values.size()).ok());
    Keys keys;
    keys.data = memory_.as<void>();
    keys.total = keys.elements = total;
    Scopes scopes;
    scopes.total = total;
    scopes.count = GetParam().count;
    scopes.elements = GetParam().elements;
    const Error error =
        SubmitKeepLargest(OwnDevice(), stream, keys, scopes, {/*k=*/2, /*k_of_last=*/2},
                          kept_.as<uint32_t>(), nonfinite);
    EXPECT_TRUE(error.ok()) << error.message;
    std::vector<uint32_t> words((total + 31) / 32);
    EXPECT_TRUE(OwnDevice()->CopyToHost(words.data(), kept_.as<void>(), 4 * words.size()).ok());
    std::vector<int64_t> kept;
    for (int64_t i = 0; i < total; ++i) {
      if ((words[i / 32] >> (i % 32) & 1) != 0) kept.push_back(i);
    }
    return kept;
  }

  // Returns scopes in which elements 1 and 3 are the largest.
  std::vector<float> Values() const {
    const ScopesOfTest& scopes = GetParam();
    std::vector<float> values(scopes.count * scopes.elements, 0.5f);
    for (int64_t i = 0; i < scopes.count; ++i) {
      values[i * scopes.elements + 1] = values[i * scopes.elements + 3] = -2;
    }
    return values;
  }
  std::vector<int64_t> Largest() const {
    std::vector<int64_t> largest;
    for (int64_t i = 0; i < GetParam().count; ++i) {
      largest.push_back(i * GetParam().elements + 1);
      largest.push_back(i * GetParam().elements + 3);
    }
    return largest;
  }

  CudaScratch memory_, kept_, nonfinite_;
};

TEST_P(KeptTest, NothingIsSaidOfNonFiniteKeysWhereNobodyAsks) {
  EXPECT_EQ(Keep(Values(), /*nonfinite=*/nullptr), Largest());
  std::vector<float> values = Values();
  values[5] = INFINITY;
  (void)Keep(values, /*nonfinite=*/nullptr);
}

TEST_P(KeptTest, NonFiniteKeysAreSaid) {
  uint32_t said = 0;
  ASSERT_TRUE(nonfinite_.Reserve(4).ok());
  ASSERT_TRUE(OwnDevice()->CopyFromHost(nonfinite_.as<void>(), &said, 4).ok());
  (void)Keep(Values(), nonfinite_.as<uint32_t>());
  ASSERT_TRUE(OwnDevice()->CopyToHost(&said, nonfinite_.as<void>(), 4).ok());
  EXPECT_EQ(said, 0u);
  std::vector<float> values = Values();
  values[GetParam().elements + 4] = NAN;
  (void)Keep(values, nonfinite_.as<uint32_t>());
  ASSERT_TRUE(OwnDevice()->CopyToHost(&said, nonfinite_.as<void>(), 4).ok());
  EXPECT_EQ(said, 1u);
}

// The emulated GPU has four multiprocessors, a real one more than the last count.
INSTANTIATE_TEST_SUITE_P(Scopes, KeptTest,
                         testing::Values(ScopesOfTest{2, 100}, ScopesOfTest{2, 3000},
                                         ScopesOfTest{2, 20000}, ScopesOfTest{300, 9001}));

// Draws are chosen by a guess of where the K-th largest lies. Here they are also chosen as numbers
// in memory. In the last scope the guess is wrong: there are fewer than K.
TEST(KeptDrawsTest, AGuessChoosesAsALookAtAllDoes) {
  Scopes scopes;
  scopes.elements = 5003;
  scopes.count = 140;
  scopes.total = (scopes.count - 1) * scopes.elements + 100;
  cudaStream_t stream;
  ASSERT_TRUE(OwnDevice()->Stream(&stream).ok());
  CudaScratch draws(OwnDevice()), kept(OwnDevice());
  ASSERT_TRUE(draws.Reserve(DrawsBytes(scopes.total)).ok());
  ASSERT_TRUE(kept.Reserve(BitmapBytes(scopes.total)).ok());
  for (const int64_t k : {1, 2, 700, 4000, 5003}) {
    Keys keys;
    keys.total = keys.elements = scopes.total;
    keys.seed = static_cast<uint64_t>(k);
    ASSERT_TRUE(SubmitDraws(stream, keys.seed, scopes.total, draws.as<void>()).ok());
    std::vector<uint32_t> words[2];
    for (const bool in_memory : {false, true}) {
      keys.data = in_memory ? draws.as<void>() : nullptr;
      ASSERT_TRUE(SubmitKeepLargest(OwnDevice(), stream, keys, scopes, {k, k}, kept.as<uint32_t>(),
                                    /*nonfinite=*/nullptr)
                      .ok());
      words[in_memory].resize((scopes.total + 31) / 32);
      ASSERT_TRUE(
          OwnDevice()
              ->CopyToHost(words[in_memory].data(), kept.as<void>(), 4 * words[in_memory].size())
              .ok());
    }
    EXPECT_EQ(words[0], words[1]) << k;
    int64_t count = 0;
    for (const uint32_t word : words[0]) count += __builtin_popcount(word);
    EXPECT_EQ(count, (scopes.count - 1) * k + std::min(k, int64_t{100}));
  }
}

}  // namespace
}  // namespace thinwire
