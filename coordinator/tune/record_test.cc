#include "coordinator/tune/record.h"

#include <filesystem>

#include "base/file.h"
#include "config/experiment.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

TuneTask Task(const std::vector<std::string>& overrides = {}) {
  const auto experiment = ParseExperiment(
      "{model: {name: resnet8, width: 4}, data: {name: digits}, optimizer: {lr: 0.1}, epochs: 1}",
      "test", overrides);
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  TuneTask task;
  task.set_experiment(ToYaml(*experiment));
  task.set_link_mbit(50);
  return task;
}

std::string Folder(const std::string& name) {
  const std::string dir = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  return dir;
}

std::string ErrorOf(const std::string& dir, const TuneTask& task) {
  return std::string(OpenTune(dir, task).status().message());
}

TEST(OpenTuneTest, GivesBackWhatWasWritten) {
  const std::string dir = Folder("again");
  auto report = OpenTune(dir, Task());
  ASSERT_TRUE(report.ok()) << report.status();
  report->set_choice("none");
  TuneRung* const rung = report->add_rungs();
  rung->add_seeds(7);
  rung->add_seeds(8);
  ASSERT_TRUE(WriteTune(dir, *report).ok());
  const auto again = OpenTune(dir, Task());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->SerializeAsString(), report->SerializeAsString());
}

TEST(OpenTuneTest, RefusesAnotherTuneByTheFieldThatDiffers) {
  const std::string dir = Folder("other");
  ASSERT_TRUE(WriteTune(dir, *OpenTune(dir, Task())).ok());
  EXPECT_THAT(ErrorOf(dir, Task({"optimizer.lr=0.2"})),
              HasSubstr("another tune stands here: optimizer.lr is 0.1, want 0.2"));
  TuneTask task = Task();
  task.set_link_mbit(20);
  EXPECT_THAT(ErrorOf(dir, task), HasSubstr("--link_mbit is 50.0, want 20.0"));
}

TEST(OpenTuneTest, RefusesAFolderOfSomethingElse) {
  const std::string dir = Folder("else");
  ASSERT_TRUE(ReplaceFile(dir + "/net.py", "class Net").ok());
  EXPECT_THAT(ErrorOf(dir, Task()), HasSubstr("holds something else than a tune"));
  ASSERT_TRUE(ReplaceFile(dir + "/tune.json", "[1").ok());
  EXPECT_THAT(ErrorOf(dir, Task()), HasSubstr("tune.json"));
}

TEST(SpeedsTest, AreTheSameAfterTheRecord) {
  Speeds speeds;
  speeds.blocks = {{1, 2, 3}, {4, 5, 6}};
  speeds.codings[{"layer1", true, "fp8", "none"}] = {0.1, 0.2, 0.3};
  speeds.others = {7, 8, 9};
  speeds.compute_source = "measured";
  speeds.codec_source = "given";
  const Speeds again = SpeedsFrom(RecordOf(speeds));
  EXPECT_EQ(RecordOf(again).SerializeAsString(), RecordOf(speeds).SerializeAsString());
  ASSERT_EQ(again.codings.size(), 1u);
  EXPECT_EQ(again.codings.begin()->second.payload_per_byte, 0.3);
  EXPECT_EQ(again.blocks[1].backward, 5);
}

}  // namespace
}  // namespace thinwire
