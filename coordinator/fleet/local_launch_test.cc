#include <filesystem>
#include <fstream>

#include "coordinator/fleet/launcher.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(FindStageServerTest, NamesBothPathsWhenItIsInNeither) {
  EXPECT_THAT(std::string(FindStageServer("/opt/x/coordinator/thinwire").status().message()),
              AllOf(HasSubstr("/opt/x/stage_server/stage_server"),
                    HasSubstr("/opt/x/coordinator/stage_server")));
}

class PluginsTest : public ::testing::Test {
 protected:
  PluginsTest() {
    experiment_.mutable_pipeline()->set_stages(1);
    experiment_.mutable_pipeline()->set_microbatches(1);
    experiment_.mutable_pipeline()->set_threads("1");
  }
  absl::StatusOr<std::vector<std::string>> FoldersOf(const std::string& activations,
                                                     const std::string& gradients) {
    CompressionConfig& compression = *experiment_.mutable_compression();
    compression.mutable_activations()->set_plugin(activations);
    compression.mutable_gradients()->set_plugin(gradients);
    const absl::StatusOr<LaunchOptions> launch =
        LocalLaunch(experiment_, Pipelines(), "stage_server");
    if (!launch.ok()) return launch.status();
    return launch->codec_plugins;
  }

  Experiment experiment_;
};

TEST_F(PluginsTest, StagesGetTheFoldersOfTheLibrariesOnce) {
  EXPECT_THAT(*FoldersOf("/a/x/../liba.so", "/a/libb.so"), ElementsAre("/a"));
  EXPECT_THAT(*FoldersOf("liba.so", "/a/libb.so"), ElementsAre("/a", fs::current_path().string()));
}

TEST_F(PluginsTest, LibrariesThatOnlyTheirFoldersTellApartAreRefused) {
  EXPECT_THAT(std::string(FoldersOf("/a/liba.so", "/b/liba.so").status().message()),
              HasSubstr("codec plug-in /b/liba.so has the file name of another, in /a"));
  EXPECT_THAT(std::string(FoldersOf("/a:b/liba.so", "").status().message()),
              HasSubstr("want a folder without ':'"));
  const std::string here = ::testing::TempDir() + "/here", there = ::testing::TempDir() + "/there";
  for (const std::string& folder : {here, there}) {
    fs::create_directories(folder);
    std::ofstream(folder + "/liba.so") << "a library";
  }
  EXPECT_THAT(std::string(FoldersOf(here + "/liba.so", there + "/libb.so").status().message()),
              HasSubstr("codec plug-in liba.so is in "));
}

}  // namespace
}  // namespace thinwire
