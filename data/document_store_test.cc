#include "data/document_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Documents = std::vector<std::vector<DocumentToken>>;

class DocumentStoreTest : public testing::Test {
 protected:
  DocumentStoreTest() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "/document_store_" + test->name();
    std::filesystem::create_directories(folder_);
  }
  ~DocumentStoreTest() override { std::filesystem::remove_all(folder_); }

  // Opens a store and counts how often its documents were asked for.
  absl::StatusOr<std::shared_ptr<const DocumentStore>> Open(const Documents& documents,
                                                            const std::string& folder) {
    return DocumentStore::Open(folder, "name", 100, [&](const DocumentStore::Sink& sink) {
      ++encoded_;
      absl::Status status;
      for (const auto& document : documents) status.Update(sink(document));
      return status;
    });
  }
  std::shared_ptr<const DocumentStore> Open(const Documents& documents) {
    auto store = Open(documents, folder_);
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }

  std::string path() const { return folder_ + "/name.tokens"; }
  std::string Content() const {
    std::ifstream file(path(), std::ios::binary);
    std::stringstream content;
    content << file.rdbuf();
    return content.str();
  }
  void Replace(const std::string& content) const {
    std::ofstream(path(), std::ios::binary) << content;
  }

  std::string folder_;
  int encoded_ = 0;
};

std::vector<DocumentToken> All(const DocumentStore& store) {
  std::vector<DocumentToken> tokens(static_cast<size_t>(store.tokens()));
  const absl::Status status = store.Read(0, absl::MakeSpan(tokens));
  EXPECT_TRUE(status.ok()) << status;
  return tokens;
}

std::vector<uint32_t> LengthsOf(const DocumentStore& store) {
  std::vector<uint32_t> lengths(static_cast<size_t>(store.documents()));
  const absl::Status status = store.ReadLengths(0, absl::MakeSpan(lengths));
  EXPECT_TRUE(status.ok()) << status;
  return lengths;
}

TEST_F(DocumentStoreTest, DocumentsAreEncodedOnceAndReadAnywhere) {
  const Documents documents = {{1, 2 | kLearned, 3}, {}, {99}};
  const auto written = Open(documents);
  const auto kept = Open(documents);
  EXPECT_EQ(encoded_, 1);
  for (const auto& store : {written, kept}) {
    EXPECT_THAT(LengthsOf(*store), ElementsAre(3, 0, 1));
    EXPECT_THAT(All(*store), ElementsAre(1, 2 | kLearned, 3, 99));
    std::vector<DocumentToken> two(2);
    ASSERT_TRUE(store->Read(1, absl::MakeSpan(two)).ok());
    EXPECT_THAT(two, ElementsAre(2 | kLearned, 3));
  }
  EXPECT_TRUE(Open({}, folder_ + "/none").ok()) << "a folder that is not there costs only time";
}

TEST_F(DocumentStoreTest, LargeDocumentsAreWrittenInPortions) {
  std::vector<DocumentToken> large(300'000);
  for (size_t i = 0; i < large.size(); ++i) large[i] = i % 100;
  const auto store = Open({{5}, large, large});
  std::vector<DocumentToken> all = {5};
  all.insert(all.end(), large.begin(), large.end());
  all.insert(all.end(), large.begin(), large.end());
  EXPECT_EQ(All(*store), all);
}

TEST_F(DocumentStoreTest, WhateverIsNotIntactIsEncodedAnew) {
  Open({{1, 2}, {3}});
  const std::string good = Content();
  for (size_t size = 0; size < good.size(); ++size) {
    Replace(good.substr(0, size));
    EXPECT_THAT(All(*Open({{7}})), ElementsAre(7)) << size;
    std::filesystem::remove(path());
  }
  for (size_t at = 0; at + 4 < good.size(); ++at) {
    std::string broken = good;
    broken[at] ^= 1;
    Replace(broken);
    EXPECT_THAT(All(*Open({{7}})), ElementsAre(7)) << at;
    std::filesystem::remove(path());
  }
  Replace(good + "abcd");
  EXPECT_THAT(All(*Open({{7}})), ElementsAre(7));
}

TEST_F(DocumentStoreTest, ANoteIsKeptWithTheDocuments) {
  std::string note;
  const auto open = [&] {
    const auto store = DocumentStore::Open(
        folder_, "name", 100,
        [&](const DocumentStore::Sink& sink) {
          ++encoded_;
          note = "a.jsonl:3";
          return sink({DocumentToken{1}});
        },
        note);
    EXPECT_TRUE(store.ok()) << store.status();
    return *store;
  };
  EXPECT_EQ(open()->note(), "a.jsonl:3");
  note.clear();
  EXPECT_EQ(open()->note(), "a.jsonl:3");
  EXPECT_EQ(encoded_, 1);
  EXPECT_THAT(All(*open()), ElementsAre(1));
}

TEST_F(DocumentStoreTest, WhatCannotBeEncodedLeavesNoFile) {
  const auto store = DocumentStore::Open(folder_, "name", 100, [](const DocumentStore::Sink& sink) {
    absl::Status status = sink({DocumentToken{1}});
    status.Update(absl::InvalidArgumentError("line 2"));
    return status;
  });
  EXPECT_EQ(store.status().message(), "line 2");
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

// Lets files have at most so many bytes until it is destroyed.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileLimit(const FileLimit&) = delete;
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }

 private:
  void (*const handler_)(int);
  rlimit before_;
};

TEST_F(DocumentStoreTest, WhereTheFolderIsFullATemporaryFileHasTheDocuments) {
  const std::vector<DocumentToken> large(300'000, 7);
  std::optional<FileLimit> full;
  int tries = 0;
  const auto source = [&](const DocumentStore::Sink& sink) {
    full.reset();
    if (++tries == 1) full.emplace(1000);
    return sink(large);
  };
  const auto store = DocumentStore::Open(folder_, "name", 100, source);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(All(**store), large);
  EXPECT_EQ(tries, 2);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(DocumentStoreTest, AFullDiskIsNoErrorOfALine) {
  const FileLimit full(1000);
  const auto store = DocumentStore::Open(folder_, "name", 100, [](const DocumentStore::Sink& sink) {
    const std::vector<DocumentToken> large(300'000, 7);
    return sink(large).ok() ? absl::OkStatus() : absl::InvalidArgumentError("a.jsonl:1: full");
  });
  EXPECT_THAT(std::string(store.status().message()), HasSubstr(": cannot write"));
}

TEST_F(DocumentStoreTest, WhatIsNotCompleteHasANameThatFoldersLeaveOut) {
  const auto store = DocumentStore::Open(folder_, "name", 100, [&](const DocumentStore::Sink&) {
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      EXPECT_EQ(entry.path().filename().string().substr(0, 13), ".name.tokens.");
      ++encoded_;
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(encoded_, 1);
}

TEST_F(DocumentStoreTest, AFileThatIsCutUnderItsReaderIsAnError) {
  const auto store = Open({{1, 2, 3}});
  std::filesystem::resize_file(path(), 44);
  std::vector<DocumentToken> all(3);
  EXPECT_THAT(std::string(store->Read(0, absl::MakeSpan(all)).message()),
              HasSubstr(" ends at byte 44"));
}

}  // namespace
}  // namespace thinwire
