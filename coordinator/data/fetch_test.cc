#include "coordinator/data/fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/random.h"
#include "base/sha256.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr char kServer[] = "coordinator/data/fetch_server_testing.py";

Interruption* TheInterruption() {
  static auto* const interruption = new Interruption;
  return interruption;
}

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

std::string Noise(uint64_t key, size_t bytes) {
  RandomStream random(key);
  std::string text;
  while (text.size() < bytes) text.push_back(static_cast<char>(random.Next()));
  return text;
}

// Serves `folder` until it is destroyed.
class Server {
 public:
  Server(const std::string& folder, const std::string& log) {
    const std::string command =
        std::string("echo $$; exec python3 ") + kServer + " " + folder + " " + log;
    out_ = popen(command.c_str(), "r");
    EXPECT_EQ(fscanf(out_, "%d %d", &pid_, &port_), 2);
  }
  ~Server() {
    kill(pid_, SIGKILL);  // the process inherited that other signals are blocked
    pclose(out_);
  }
  std::string Address(const std::string& fault) const {
    return "http://127.0.0.1:" + std::to_string(port_) + "/" + fault;
  }

 private:
  FILE* out_;
  int pid_ = 0, port_ = 0;
};

// A data set of two files, laid out like WikiText-2's archive, on a local server.
class FetchDataTest : public testing::Test {
 protected:
  FetchDataTest()
      : root_(testing::TempDir() + "/fetch_" +
              testing::UnitTest::GetInstance()->current_test_info()->name()),
        mirror_(root_ + "/mirror") {
    TheInterruption();
    fs::remove_all(root_);
    fs::create_directories(mirror_ + "/wikitext-2");
    data_.name = "wikitext2";
    for (const char* name : {"wiki.train.tokens", "wiki.valid.tokens"}) {
      const std::string content = Noise(data_.files.size(), 50'000);
      std::ofstream(mirror_ + "/wikitext-2/" + name, std::ios::binary) << content;
      std::ofstream(mirror_ + "/" + name, std::ios::binary) << content;
      data_.files.push_back({name, 50'000, Sha256(content)});
    }
    Run("cd " + mirror_ +
        " && python3 -m zipfile -c set.zip wikitext-2/ && tar czf set.tar.gz wikitext-2");
    server_.emplace(mirror_, root_ + "/log");
    options_.dir = root_ + "/data/wikitext2";
  }
  ~FetchDataTest() override { fs::remove_all(root_); }

  static void Run(const std::string& command) { ASSERT_EQ(std::system(command.c_str()), 0); }

  void HasArchive(const std::string& address) {
    data_.sources.push_back({address, "wikitext-2", {}});
  }
  void HasFiles(const std::string& base) {
    OfficialSource source;
    for (const OfficialFile& file : data_.files) source.files.push_back(base + "/" + file.name);
    data_.sources.push_back(source);
  }
  absl::StatusOr<std::string> Fetch() { return FetchData(data_, options_, TheInterruption()); }
  std::string Refusal(absl::StatusCode code) {
    const absl::Status status = Fetch().status();
    EXPECT_EQ(status.code(), code) << status;
    return std::string(status.message());
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& file : fs::directory_iterator(options_.dir)) {
      names.push_back(file.path().filename().string());
    }
    return names;
  }
  void ExpectFetched() {
    const absl::StatusOr<std::string> folder = Fetch();
    ASSERT_TRUE(folder.ok()) << folder.status();
    EXPECT_EQ(*folder, options_.dir);
    EXPECT_THAT(Files(), UnorderedElementsAre("wiki.train.tokens", "wiki.valid.tokens"));
    for (const OfficialFile& file : data_.files) {
      EXPECT_EQ(Sha256(Content(options_.dir + "/" + file.name)), file.sha256);
    }
  }
  // Returns "PATH RANGE" of each request.
  std::vector<std::string> Requests() const {
    std::ifstream log(root_ + "/log");
    std::vector<std::string> lines;
    for (std::string line; std::getline(log, line);) lines.push_back(line);
    return lines;
  }

  const std::string root_, mirror_;
  std::optional<Server> server_;
  OfficialData data_;
  FetchOptions options_;
};

TEST_F(FetchDataTest, UnpacksAnArchive) {
  HasArchive(server_->Address("plain") + "/set.zip");
  ExpectFetched();
  fs::remove_all(options_.dir);
  data_.sources.clear();
  HasArchive(server_->Address("plain") + "/set.tar.gz");
  ExpectFetched();
}

TEST_F(FetchDataTest, TakesFilesOfTheirOwn) {
  HasFiles(server_->Address("plain"));
  ExpectFetched();
}

TEST_F(FetchDataTest, WhatIsThereIsNotDownloadedAgain) {
  HasFiles(server_->Address("plain"));
  ExpectFetched();
  ExpectFetched();
  EXPECT_THAT(Requests(), SizeIs(2));
  std::ofstream(options_.dir + "/wiki.valid.tokens") << "damaged";
  ExpectFetched();
  EXPECT_THAT(Requests(), SizeIs(4));
}

TEST_F(FetchDataTest, WhatWasUnpackedByHandIsSeenWhereItLies) {
  HasArchive("http://127.0.0.1:1/set.zip");
  fs::create_directories(options_.dir);
  fs::copy(mirror_ + "/wikitext-2", options_.dir + "/wikitext-2");
  const absl::StatusOr<std::string> folder = Fetch();
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(*folder, options_.dir + "/wikitext-2");
  std::ofstream(options_.dir + "/wikitext-2/wiki.valid.tokens") << "damaged";
  EXPECT_THAT(Refusal(absl::StatusCode::kUnavailable), HasSubstr("curl ended with code 7"));
}

TEST_F(FetchDataTest, AProgramThatIsMissingIsNamedAndTheDownloadKept) {
  HasArchive(server_->Address("plain") + "/set.zip");
  const std::string path = std::getenv("PATH"), folder = root_ + "/bin";
  fs::create_directories(folder);
  setenv("PATH", folder.c_str(), 1);
  EXPECT_THAT(Refusal(absl::StatusCode::kNotFound), HasSubstr("curl, which has to be installed"));
  fs::create_symlink("/usr/bin/curl", folder + "/curl");
  EXPECT_THAT(Refusal(absl::StatusCode::kNotFound), HasSubstr("unzip, which has to be installed"));
  EXPECT_THAT(Files(), ElementsAre("set.zip.part"));
  setenv("PATH", path.c_str(), 1);
  ExpectFetched();
}

TEST_F(FetchDataTest, ADownloadThatBreaksOffGoesOnWhereItEnded) {
  HasArchive(server_->Address("breaks") + "/set.zip");
  const auto bytes = fs::file_size(mirror_ + "/set.zip");
  EXPECT_THAT(Refusal(absl::StatusCode::kUnavailable),
              AllOf(HasSubstr("/breaks/set.zip: curl ended with code 18 after "),
                    HasSubstr("cannot fetch wikitext2")));
  EXPECT_THAT(Files(), ElementsAre("set.zip.part"));
  EXPECT_THAT(Requests(), SizeIs(4));
  EXPECT_EQ(Requests()[1], "/breaks/set.zip bytes=" + std::to_string(bytes / 2) + "-");
  ExpectFetched();
}

TEST_F(FetchDataTest, AServerWithoutRangesIsAskedForTheWholeFile) {
  HasArchive(server_->Address("no_ranges") + "/set.zip");
  fs::create_directories(options_.dir);
  std::ofstream(options_.dir + "/set.zip.part") << "something";
  ExpectFetched();
}

TEST_F(FetchDataTest, ADownloadThatWasWholeAlreadyIsTakenOrMadeAnew) {
  HasArchive(server_->Address("plain") + "/set.zip");
  fs::create_directories(options_.dir);
  fs::copy_file(mirror_ + "/set.zip", options_.dir + "/set.zip.part");
  ExpectFetched();
}

TEST_F(FetchDataTest, OtherBytesThanTheOfficialOnesAreRemoved) {
  data_.files[1].sha256 = std::string(64, '0');
  HasFiles(server_->Address("plain"));
  HasArchive(server_->Address("plain") + "/set.tar.gz");
  EXPECT_THAT(Refusal(absl::StatusCode::kUnavailable),
              AllOf(HasSubstr("/plain/wiki.train.tokens: "), HasSubstr("/plain/set.tar.gz: "),
                    HasSubstr("wiki.valid.tokens has SHA-256 "), HasSubstr("want 0000")));
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(FetchDataTest, ATruncatedFileIsNamedWithItsSizeAndRemoved) {
  HasFiles(server_->Address("short"));
  EXPECT_THAT(Refusal(absl::StatusCode::kUnavailable),
              AllOf(HasSubstr("wiki.train.tokens has SHA-256 "), HasSubstr("(25000 bytes)"),
                    HasSubstr("(50000 bytes)")));
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(FetchDataTest, ATruncatedArchiveIsNamedAndRemoved) {
  HasArchive(server_->Address("short") + "/set.zip");
  HasArchive(server_->Address("short") + "/set.tar.gz");
  EXPECT_THAT(
      Refusal(absl::StatusCode::kUnavailable),
      AllOf(HasSubstr("unzip cannot unpack set.zip"), HasSubstr("tar cannot unpack set.tar.gz")));
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(FetchDataTest, APageInThePlaceOfAnArchiveIsNamed) {
  std::ofstream(mirror_ + "/set.tar.gz") << "<!DOCTYPE html><html>Sign in</html>";
  HasArchive(server_->Address("plain") + "/set.tar.gz");
  EXPECT_THAT(Refusal(absl::StatusCode::kUnavailable),
              HasSubstr("set.tar.gz.part: is an HTML page"));
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(FetchDataTest, AnAddressThatFailsGivesWayToTheNext) {
  HasArchive("http://127.0.0.1:1/set.zip");
  HasArchive(server_->Address("plain") + "/none.zip");
  HasFiles(server_->Address("plain"));
  ExpectFetched();
}

TEST_F(FetchDataTest, AddressesThatDoNotAnswerAreNamed) {
  HasArchive("http://127.0.0.1:1/set.zip");
  HasArchive(server_->Address("plain") + "/none.zip");
  EXPECT_THAT(Refusal(absl::StatusCode::kUnavailable),
              AllOf(HasSubstr("http://127.0.0.1:1/set.zip: curl ended with code 7"),
                    HasSubstr("/plain/none.zip: curl ended with code 22")));
}

TEST_F(FetchDataTest, AMirrorHasTheArchiveOrTheFiles) {
  HasArchive("http://127.0.0.1:1/official/set.zip");
  for (const std::string& from :
       {mirror_, mirror_ + "/", mirror_ + "/wikitext-2", server_->Address("plain"),
        "file://" + fs::absolute(mirror_).string()}) {
    SCOPED_TRACE(from);
    options_.from = from;
    ExpectFetched();
    fs::remove_all(options_.dir);
  }
  EXPECT_TRUE(fs::exists(mirror_ + "/set.zip")) << "a mirror is left as it is";
  EXPECT_TRUE(fs::exists(mirror_ + "/wiki.train.tokens"));
  options_.from = root_ + "/nowhere";
  EXPECT_THAT(Refusal(absl::StatusCode::kUnavailable),
              AllOf(HasSubstr("/nowhere/set.zip: is no file"),
                    HasSubstr("/nowhere/wiki.train.tokens: is no file")));
}

TEST_F(FetchDataTest, AFolderThatCannotBeWrittenIsNamed) {
  HasFiles(server_->Address("plain"));
  std::ofstream(root_ + "/data") << "a file";
  const absl::Status status = Fetch().status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(options_.dir));
  EXPECT_THAT(Requests(), IsEmpty());
}

}  // namespace
}  // namespace thinwire
