#include "compress/feedback/state_store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstring>

#include "compress/codecs/round_trip_testing.h"

namespace thinwire {
namespace {

constexpr int64_t kElements = 1000;

FeedbackOptions OptionsOf(StateStorage storage, const std::string& dir = "") {
  FeedbackOptions options;
  options.spec.store = storage;
  options.sample = {1, kElements};
  options.spec.dir = dir;
  options.device = CpuDevice();
  options.kernels = CpuCodecKernels();
  return options;
}

std::unique_ptr<StateStore> StoreOf(const FeedbackOptions& options) {
  return std::move(*StateStore::New(options));
}

void Put(StateStore* store, size_t row, const std::vector<float>& values) {
  std::memcpy(store->ToWrite(row).data, values.data(), 4 * values.size());
  ASSERT_TRUE(store->Save(row).ok());
}

std::vector<float> Get(StateStore* store, size_t row) {
  const float* values = static_cast<const float*>(store->Load(row)->data);
  return std::vector<float>(values, values + kElements);
}

std::vector<uint8_t> StoredOf(StateStore* store, size_t row) {
  std::vector<uint8_t> bytes(store->row_bytes());
  EXPECT_TRUE(store->ReadStored(row, absl::MakeSpan(bytes)).ok());
  return bytes;
}

const StateStorage kStorages[] = {StateStorage::kF32, StateStorage::kF16, StateStorage::kQ8,
                                  StateStorage::kQ4};

TEST(StoredRowBytesTest, AreThoseOfTheCodecs) {
  EXPECT_EQ(StoredRowBytes(StateStorage::kF32, 1000), 4000u);
  EXPECT_EQ(StoredRowBytes(StateStorage::kF16, 1000), 2002u);
  EXPECT_EQ(StoredRowBytes(StateStorage::kQ8, 1000), 4 * 4u + 1000);
  EXPECT_EQ(StoredRowBytes(StateStorage::kQ4, 1000), 4 * 4u + 500);
  EXPECT_EQ(StoredRowBytes(StateStorage::kQ4, 3), 4u + 2);
}

TEST(StateStoreTest, RowsComeBackWithTheErrorOfTheirStorage) {
  const std::vector<float> x = RandomValues(kElements, 1);
  const double tolerance[] = {0, 1.5 / 2048, 1.5 / 254, 1.5 / 14};
  for (const std::string& dir : {std::string(), testing::TempDir()}) {
    for (int s = 0; s < 4; ++s) {
      const auto store = StoreOf(OptionsOf(kStorages[s], dir));
      const size_t row = *store->Add(5);
      Put(store.get(), row, x);
      const std::vector<float> y = Get(store.get(), row);
      for (int64_t i = 0; i < kElements; ++i) {
        ASSERT_NEAR(x[i], y[i], tolerance[s]) << Name(kStorages[s]) << " " << i;
      }
    }
  }
}

TEST(StateStoreTest, FileAndMemoryHoldEqualBytes) {
  for (const StateStorage storage : kStorages) {
    const auto memory = StoreOf(OptionsOf(storage));
    const auto file = StoreOf(OptionsOf(storage, testing::TempDir()));
    for (uint64_t round = 0; round < 3; ++round) {
      for (uint64_t key = 0; key < 50; ++key) {
        const std::vector<float> x = RandomValues(kElements, 100 * round + key);
        for (StateStore* store : {memory.get(), file.get()}) {
          const size_t found = store->Find(7 * key);
          Put(store, found == StateStore::kAbsent ? *store->Add(7 * key) : found, x);
        }
      }
    }
    ASSERT_EQ(memory->keys(), file->keys());
    for (size_t row = 0; row < memory->keys().size(); ++row) {
      EXPECT_EQ(StoredOf(memory.get(), row), StoredOf(file.get(), row));
      EXPECT_EQ(Get(memory.get(), row), Get(file.get(), row));
      EXPECT_EQ(*memory->RowDigest(row), *file->RowDigest(row));
    }
  }
}

TEST(StateStoreTest, RestoredRowsAreTheSameBytes) {
  for (const StateStorage storage : kStorages) {
    const auto store = StoreOf(OptionsOf(storage));
    Put(store.get(), *store->Add(3), RandomValues(kElements, 1));
    Put(store.get(), *store->Add(9), RandomValues(kElements, 2));
    const auto other = StoreOf(OptionsOf(storage, testing::TempDir()));
    for (size_t row = 0; row < 2; ++row) {
      const uint64_t key = store->keys()[row];
      ASSERT_TRUE(other->Restore(key, StoredOf(store.get(), row)).ok());
      ASSERT_TRUE(other->Restore(key, StoredOf(store.get(), row)).ok());  // replaces
    }
    EXPECT_EQ(other->keys(), store->keys());
    EXPECT_EQ(Get(other.get(), 1), Get(store.get(), 1));
  }
}

TEST(StateStoreTest, RestoreRefusesAnotherSizeAndARowTooMany) {
  FeedbackOptions options = OptionsOf(StateStorage::kF16);
  options.spec.limit_bytes = 2 * 2002 + 2001;
  const auto store = StoreOf(options);
  EXPECT_EQ(store->capacity(), 2u);
  const std::vector<uint8_t> row(2002);
  EXPECT_EQ(store->Restore(1, absl::MakeSpan(row).subspan(1)).code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(store->Restore(1, row).ok());
  ASSERT_TRUE(store->Restore(2, row).ok());
  EXPECT_EQ(store->Restore(3, row).code(), absl::StatusCode::kResourceExhausted);
}

TEST(StateStoreTest, AMalformedRestoredRowIsAnErrorThatNamesIt) {
  const auto store = StoreOf(OptionsOf(StateStorage::kQ8));
  const std::vector<uint8_t> row(store->row_bytes(), 0xFF);  // ranges of NaN
  ASSERT_TRUE(store->Restore(77, row).ok());
  const absl::Status status = store->Load(0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("row 77"), std::string::npos) << status;
}

TEST(StateStoreTest, NonFiniteRowsAreKeptOrZero) {
  std::vector<float> x = RandomValues(kElements, 1);
  x[7] = INFINITY;
  for (const StateStorage storage : kStorages) {
    const auto store = StoreOf(OptionsOf(storage));
    Put(store.get(), *store->Add(1), x);
    const std::vector<float> y = Get(store.get(), 0);
    if (storage == StateStorage::kF32 || storage == StateStorage::kF16) {
      EXPECT_EQ(y[7], INFINITY);
    } else {
      EXPECT_EQ(y, std::vector<float>(kElements));
    }
  }
}

TEST(StateStoreTest, DigestsTellKeysAndValuesApart) {
  const auto store = StoreOf(OptionsOf(StateStorage::kF32));
  std::vector<float> x = RandomValues(kElements, 1);
  Put(store.get(), *store->Add(1), x);
  Put(store.get(), *store->Add(2), x);
  EXPECT_NE(*store->RowDigest(0), *store->RowDigest(1));
  const uint64_t before = *store->RowDigest(0);
  x[500] = std::nextafter(x[500], 2.0f);
  Put(store.get(), 0, x);
  EXPECT_NE(*store->RowDigest(0), before);
}

TEST(StateStoreTest, MemoryGrowsBySlabsOfTwiceTheSizeBefore) {
  FeedbackOptions options = OptionsOf(StateStorage::kF32);
  options.sample = {1, 1 << 13};
  const auto store = StoreOf(options);  // two rows fill the first slab
  const size_t before = CpuDevice()->bytes_in_use();
  const auto taken = [&] { return CpuDevice()->bytes_in_use() - before; };
  ASSERT_TRUE(store->Add(0).ok());
  EXPECT_EQ(taken(), 64u << 10);
  ASSERT_TRUE(store->Add(1).ok());
  EXPECT_EQ(taken(), 64u << 10);
  ASSERT_TRUE(store->Add(2).ok());
  EXPECT_EQ(taken(), 192u << 10);
  // Eight slabs hold 2 + 4 + ... + 256 = 510 rows; the ninth and all later ones take 16 MiB.
  for (uint64_t key = 3; key < 510; ++key) ASSERT_TRUE(store->Add(key).ok());
  const size_t small = taken();
  EXPECT_EQ(small, 510u << 15);
  ASSERT_TRUE(store->Add(510).ok());
  EXPECT_EQ(taken() - small, 16u << 20);
  for (uint64_t key = 511; key < 510 + 513; ++key) ASSERT_TRUE(store->Add(key).ok());
  EXPECT_EQ(taken() - small, 32u << 20);
  ASSERT_TRUE(store->Clear().ok());
  EXPECT_EQ(taken(), 0u);
}

TEST(StateStoreTest, MemoryIsForNoMoreRowsThanTheLimitAllows) {
  FeedbackOptions options = OptionsOf(StateStorage::kF32);
  options.sample = {1, 1 << 13};
  options.spec.limit_bytes = 3 << 15;
  const auto store = StoreOf(options);
  const size_t before = CpuDevice()->bytes_in_use();
  for (uint64_t key = 0; key < 3; ++key) ASSERT_TRUE(store->Add(key).ok());
  EXPECT_EQ(CpuDevice()->bytes_in_use() - before, 3u << 15);
}

TEST(StateFileTest, AFolderThatIsNotThereIsNamed) {
  const auto status = StateStore::New(OptionsOf(StateStorage::kF32, "/no/such/folder")).status();
  EXPECT_NE(status.message().find("/no/such/folder/thinwire-state-"), std::string::npos) << status;
}

TEST(StateFileTest, AFullDiskIsResourceExhaustedAndNamesTheFile) {
  const auto store = StoreOf(OptionsOf(StateStorage::kF32, testing::TempDir()));
  const std::vector<float> x = RandomValues(kElements, 1);
  Put(store.get(), *store->Add(1), x);
  // Limits files to the first row and a half.
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit = {6000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const size_t row = *store->Add(2);
  std::memcpy(store->ToWrite(row).data, x.data(), 4 * kElements);
  const absl::Status status = store->Save(row);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, ignored);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find(testing::TempDir()), std::string::npos) << status;
  EXPECT_EQ(Get(store.get(), 0), x);
}

TEST(StateFileTest, ARowThatWasNeverWrittenCannotBeRead) {
  const auto store = StoreOf(OptionsOf(StateStorage::kF32, testing::TempDir()));
  EXPECT_EQ(store->Load(*store->Add(1)).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace thinwire
