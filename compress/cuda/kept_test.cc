#include "compress/cuda/kept.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "compress/cuda/key_copies.h"
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
    const Error error = SubmitKeepLargest(OwnDevice(), keys, scopes, {/*k=*/2, /*k_of_last=*/2},
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

// Keeps the k largest of each scope, the first among equal ones, and no zeros unless `zeros`.
std::vector<bool> LargestOf(const std::vector<float>& values, int64_t elements, int64_t k,
                            bool zeros) {
  const auto total = static_cast<int64_t>(values.size());
  std::vector<bool> kept(values.size());
  for (int64_t begin = 0; begin < total; begin += elements) {
    std::vector<int64_t> order(std::min(elements, total - begin));
    std::iota(order.begin(), order.end(), begin);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return std::fabs(values[a]) > std::fabs(values[b]);
    });
    for (int64_t i = 0; i < std::min<int64_t>(k, order.size()) && (zeros || values[order[i]] != 0);
         ++i) {
      kept[order[i]] = true;
    }
  }
  return kept;
}

// Scopes of many blocks and, if the count is zero, so many that each has a block.
class KeptOfSampleTest : public testing::TestWithParam<ScopesOfTest> {
 protected:
  int64_t count() const {
    return GetParam().count == 0 ? OwnDevice()->multiprocessors() : GetParam().count;
  }
  void ExpectLargest(const std::vector<float>& values) {
    for (const bool zeros : {false, true}) ExpectLargest(values, zeros);
  }
  void ExpectLargest(const std::vector<float>& values, bool zeros) {
    SCOPED_TRACE(zeros);
    Scopes scopes;
    scopes.total = static_cast<int64_t>(values.size());
    scopes.count = count();
    scopes.elements = GetParam().elements;
    CudaScratch memory(OwnDevice()), kept(OwnDevice());
    ASSERT_TRUE(memory.Reserve(4 * values.size()).ok());
    ASSERT_TRUE(kept.Reserve(BitmapBytes(scopes.total)).ok());
    ASSERT_TRUE(
        OwnDevice()->CopyFromHost(memory.as<void>(), values.data(), 4 * values.size()).ok());
    Keys keys;
    keys.data = memory.as<void>();
    keys.total = keys.elements = scopes.total;
    for (const double ratio : {0.0001, 0.01, 0.3, 0.9, 1.0}) {
      const auto k = static_cast<int64_t>(std::ceil(ratio * scopes.elements));
      const int64_t k_of_last = std::min(k, scopes.elements - 100);
      ASSERT_TRUE(SubmitKeepLargest(OwnDevice(), keys, scopes, {k, k_of_last, zeros},
                                    kept.as<uint32_t>(), /*nonfinite=*/nullptr)
                      .ok());
      std::vector<uint32_t> words(BitmapBytes(scopes.total) / 4);
      ASSERT_TRUE(OwnDevice()->CopyToHost(words.data(), kept.as<void>(), 4 * words.size()).ok());
      std::vector<bool> found(values.size());
      for (int64_t i = 0; i < scopes.total; ++i) found[i] = (words[i / 32] >> (i % 32) & 1) != 0;
      EXPECT_EQ(found, LargestOf(values, scopes.elements, k, zeros)) << ratio;
      for (int64_t i = scopes.total; i < 32 * static_cast<int64_t>(words.size()); ++i) {
        EXPECT_EQ(words[i / 32] >> (i % 32) & 1, 0u) << ratio;
      }
    }
  }
  std::vector<float> Normal() {
    std::vector<float> values(count() * GetParam().elements - 100);
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (float& value : values) value = normal(random);
    return values;
  }
};

TEST_P(KeptOfSampleTest, Normal) { ExpectLargest(Normal()); }

TEST_P(KeptOfSampleTest, HalfZeros) {
  std::vector<float> values = Normal();
  for (float& value : values) value = std::max(value, 0.0f);
  ExpectLargest(values);
}

TEST_P(KeptOfSampleTest, FewDifferentOnes) {
  std::vector<float> values = Normal();
  for (float& value : values) value = std::round(2 * value);
  ExpectLargest(values);
  ExpectLargest(std::vector<float>(values.size(), -1.5f));
}

TEST_P(KeptOfSampleTest, EqualNeighbours) {
  std::vector<float> values = Normal();
  for (size_t i = 0; i < values.size(); ++i) values[i] = values[i / 8 * 8];
  ExpectLargest(values);
}

// Tests data of which a sample is no picture: its vectors differ from those between them.
TEST_P(KeptOfSampleTest, VectorsThatDiffer) {
  for (const size_t distance : {2, 3}) {
    for (size_t which = 0; which < distance; ++which) {
      std::vector<float> values = Normal();
      for (size_t i = 0; i < values.size(); ++i) {
        if (i / 4 % distance == which) values[i] += 100;
      }
      ExpectLargest(values);
    }
  }
}

// One scope begins at no whole word, and one is too large for the list of a block.
INSTANTIATE_TEST_SUITE_P(Scopes, KeptOfSampleTest,
                         testing::Values(ScopesOfTest{2, 66000}, ScopesOfTest{3, 33333},
                                         ScopesOfTest{0, 9001}, ScopesOfTest{0, 66000}));

// Draws are chosen by a guess of where the K-th largest lies. Here they are also chosen as numbers
// in memory. In the last scope the guess is wrong: there are fewer than K.
TEST(KeptDrawsTest, AGuessChoosesAsALookAtAllDoes) {
  Scopes scopes;
  scopes.elements = 5003;
  scopes.count = 140;
  scopes.total = (scopes.count - 1) * scopes.elements + 100;
  CudaScratch draws(OwnDevice()), kept(OwnDevice());
  ASSERT_TRUE(draws.Reserve(DrawsBytes(scopes.total)).ok());
  ASSERT_TRUE(kept.Reserve(BitmapBytes(scopes.total)).ok());
  for (const int64_t k : {1, 2, 700, 4000, 5003}) {
    Keys keys;
    keys.total = keys.elements = scopes.total;
    keys.seed = static_cast<uint64_t>(k);
    ASSERT_TRUE(SubmitDraws(OwnDevice(), keys.seed, scopes.total, draws.as<void>()).ok());
    std::vector<uint32_t> words[2];
    for (const bool in_memory : {false, true}) {
      keys.data = in_memory ? draws.as<void>() : nullptr;
      ASSERT_TRUE(SubmitKeepLargest(OwnDevice(), keys, scopes, {k, k}, kept.as<uint32_t>(),
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
