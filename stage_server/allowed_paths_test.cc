#include "stage_server/allowed_paths.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Has two folders: folder/, which the flags name, with sub/ and libmine.so, and outside/ beside it.
class AllowedPathsTest : public ::testing::Test {
 protected:
  AllowedPathsTest() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::canonical(::testing::TempDir()) / test->name();
    fs::remove_all(root_);
    for (const char* folder : {"folder/sub", "outside"}) fs::create_directories(root_ / folder);
    std::ofstream(root_ / "folder/libmine.so") << "a library";
    allowed_.codec_plugins = {Path("outside"), Path("folder")};
    allowed_.data = allowed_.state = Path("folder");
  }
  ~AllowedPathsTest() override { fs::remove_all(root_); }

  std::string Path(const std::string& below) const { return (root_ / below).string(); }
  absl::Status Confine() { return ConfinePaths(allowed_, /*reads_data=*/true, &experiment_); }
  absl::Status ConfineDir(const std::string& dir) {
    experiment_.mutable_data()->set_dir(dir);
    return Confine();
  }
  absl::Status ConfineFile(const std::string& file) {
    experiment_.mutable_data()->set_file(file);
    return Confine();
  }
  absl::Status ConfinePlugin(const std::string& plugin) {
    experiment_.mutable_compression()->mutable_gradients()->set_plugin(plugin);
    return Confine();
  }

  fs::path root_;
  AllowedPaths allowed_;
  Experiment experiment_;
};

TEST_F(AllowedPathsTest, ANameInTheHubIsFollowedWhereDataAreRead) {
  const std::string id = "hf:Ada/none";
  experiment_.mutable_data()->set_vocabulary(id);
  EXPECT_EQ(ConfinePaths(allowed_, /*reads_data=*/false, &experiment_), absl::OkStatus());
  EXPECT_EQ(experiment_.data().vocabulary(), id);
  const absl::Status read = Confine();
  EXPECT_EQ(read.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(read.message()), HasSubstr("data.vocabulary: hf:Ada/none: is not in"));
}

TEST_F(AllowedPathsTest, APathBelowTheFolderIsTaken) {
  EXPECT_TRUE(ConfineDir(Path("folder/sub/../sub")).ok());
  EXPECT_EQ(experiment_.data().dir(), Path("folder/sub"));
  EXPECT_TRUE(ConfineDir(Path("folder")).ok());
  EXPECT_TRUE(ConfineDir(Path("folder/not/there")).ok());
}

TEST_F(AllowedPathsTest, ARelativePathBeginsAtTheWorkingDirectory) {
  const fs::path before = fs::current_path();
  fs::current_path(root_ / "folder");
  allowed_.data = ".";
  EXPECT_TRUE(ConfineDir("sub").ok());
  EXPECT_EQ(experiment_.data().dir(), Path("folder/sub"));
  EXPECT_EQ(ConfineDir("../outside").code(), absl::StatusCode::kPermissionDenied);
  fs::current_path(before);
}

TEST_F(AllowedPathsTest, ThePathOutOfTheFolderIsRefusedNamingBoth) {
  for (const std::string path :
       {"outside", "folder/../outside", "folder/not/there/../../..", "folder2", "."}) {
    EXPECT_THAT(std::string(ConfineDir(Path(path)).message()),
                AllOf(HasSubstr("data.dir: " + Path(path)), HasSubstr("want a path below "),
                      HasSubstr(Path("folder")), HasSubstr("--data")))
        << path;
  }
}

TEST_F(AllowedPathsTest, ALinkOutOfTheFolderIsRefused) {
  fs::create_symlink(root_ / "outside", root_ / "folder/link");
  EXPECT_THAT(std::string(ConfineDir(Path("folder/link/file")).message()),
              HasSubstr("leads to " + Path("outside/file")));
}

TEST_F(AllowedPathsTest, ALinkOutOfTheFolderThatAPatternOrAFolderStandsForIsRefused) {
  std::ofstream(root_ / "outside/secret") << "a";
  std::ofstream(root_ / "folder/sub/text") << "a";
  fs::create_symlink(root_ / "folder/sub/text", root_ / "folder/sub/inside");
  for (const char* path : {"folder/sub/in*", "folder/sub"}) {
    EXPECT_TRUE(ConfineFile(Path(path)).ok());
    EXPECT_EQ(experiment_.data().file(), Path(path));
  }
  fs::create_symlink(root_ / "outside/secret", root_ / "folder/sub/link");
  for (const char* path : {"folder/sub/lin?", "folder/sub", "folder"}) {
    EXPECT_THAT(std::string(ConfineFile(Path(path)).message()),
                AllOf(HasSubstr("data.file: " + Path("folder/sub/link")),
                      HasSubstr("leads to " + Path("outside/secret"))))
        << path;
  }
}

TEST_F(AllowedPathsTest, ALinkToAFileKeepsItsNameForTheMaskBesideIt) {
  std::ofstream(root_ / "folder/sub/ids") << "a";
  fs::create_symlink("sub/ids", root_ / "folder/train.bin");
  fs::create_symlink("folder", root_ / "other");
  EXPECT_EQ(ConfineFile(Path("other/sub/../train.bin")), absl::OkStatus());
  EXPECT_EQ(experiment_.data().file(), Path("folder/train.bin"));
  fs::create_symlink("sub", root_ / "folder/all");
  EXPECT_EQ(ConfineFile(Path("folder/all")), absl::OkStatus());
  EXPECT_EQ(experiment_.data().file(), Path("folder/sub")) << "masks lie in it";
  fs::create_symlink("../folder/sub/ids", root_ / "outside/train.bin");
  EXPECT_THAT(std::string(ConfineFile(Path("outside/train.bin")).message()),
              HasSubstr("leads to " + Path("outside/train.bin") + ", want a path below "));
}

TEST_F(AllowedPathsTest, AMaskThatIsALinkOutOfTheFolderIsRefused) {
  std::ofstream(root_ / "folder/train.bin") << "a";
  std::ofstream(root_ / "folder/sub/mask") << "a";
  std::ofstream(root_ / "outside/secret") << "a";
  fs::create_symlink("sub/mask", root_ / "folder/train.mask");
  EXPECT_EQ(ConfineFile(Path("folder/train.bin")), absl::OkStatus());
  fs::remove(root_ / "folder/train.mask");
  fs::create_symlink("../outside/secret", root_ / "folder/train.mask");
  for (const char* path : {"folder/train.bin", "folder/*.bin"}) {
    EXPECT_THAT(std::string(ConfineFile(Path(path)).message()),
                AllOf(HasSubstr("data.file: " + Path("folder/train.mask")),
                      HasSubstr("leads to " + Path("outside/secret"))))
        << path;
  }
}

TEST_F(AllowedPathsTest, EveryPathOfAnExperimentIsLookedAt) {
  const auto refuses = [this](const char* field) {
    EXPECT_THAT(std::string(Confine().message()), HasSubstr(std::string(field) + ": /etc"));
    experiment_.Clear();
  };
  experiment_.mutable_data()->set_file("/etc/passwd");
  refuses("data.file");
  experiment_.mutable_data()->set_vocabulary("/etc");
  refuses("data.vocabulary");
  CompressionConfig* compression = experiment_.mutable_compression();
  compression->mutable_activations()->mutable_feedback()->set_dir("/etc");
  refuses("compression.activations.feedback.dir");
  BoundaryConfig& own = (*experiment_.mutable_compression()->mutable_boundaries())["layer1"];
  own.mutable_gradients()->mutable_feedback()->set_dir("/etc");
  refuses("compression.boundaries.layer1.gradients.feedback.dir");
}

TEST_F(AllowedPathsTest, ALibraryIsFoundByItsNameAlone) {
  EXPECT_TRUE(ConfinePlugin("/somewhere/of/the/coordinator/libmine.so").ok());
  EXPECT_EQ(experiment_.compression().gradients().plugin(), Path("folder/libmine.so"));
}

TEST_F(AllowedPathsTest, AnUnknownLibraryIsRefusedNamingTheFolders) {
  EXPECT_THAT(std::string(ConfinePlugin("/dev/ptmx").message()),
              AllOf(HasSubstr("compression.gradients.plugin: codec plug-in ptmx"),
                    HasSubstr(Path("outside") + ":" + Path("folder"))));
  EXPECT_FALSE(ConfinePlugin("folder/..").ok());
  EXPECT_FALSE(ConfinePlugin("folder/").ok());
  allowed_.codec_plugins.clear();
  EXPECT_THAT(std::string(ConfinePlugin("libmine.so").message()),
              HasSubstr("--codec_plugins names no folder"));
}

TEST_F(AllowedPathsTest, AFifoIsNoLibrary) {
  ASSERT_EQ(mkfifo(Path("folder/libfifo.so").c_str(), 0600), 0);
  EXPECT_THAT(std::string(ConfinePlugin("libfifo.so").message()),
              HasSubstr("libfifo.so: is a FIFO, want a regular file"));
}

TEST_F(AllowedPathsTest, AModelOfTheStagesIsBelowTheFolderOfData) {
  experiment_.set_init(Path("outside"));
  EXPECT_TRUE(Confine().ok()) << "the coordinator's";
  experiment_.set_init_at("stages");
  EXPECT_THAT(std::string(Confine().message()),
              AllOf(HasSubstr("init: " + Path("outside")), HasSubstr(Path("folder"))));
  experiment_.set_init(Path("folder/../folder/sub"));
  ASSERT_TRUE(Confine().ok());
  EXPECT_EQ(experiment_.init(), Path("folder/sub"));
}

}  // namespace
}  // namespace thinwire
