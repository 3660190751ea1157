#include "coordinator/sweep/sweep_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Written(const std::string& name, const std::string& text) {
  const std::string path = ::testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

std::string ErrorOf(const std::string& text) {
  const std::string path = Written("s.yaml", text);
  const std::string message(ReadSweep(path).status().message());
  return message.rfind(path, 0) == 0 ? message.substr(path.size()) : message;
}

TEST(SweepFileTest, HasRowsAxesAndSeedsWithTheirPlaces) {
  Written("base.yaml", "epochs: 3\n");
  const std::string path = Written("codecs.yaml",
                                   "experiment: base.yaml\n"
                                   "rows:\n"
                                   "  none: {compression.activations.codec: none}\n"
                                   "  topk:\n"
                                   "    compression.activations: {codec: topk, ratio: 0.1}\n"
                                   "axes:\n"
                                   "  optimizer.lr: [0.1, 1e-3]\n"
                                   "seeds: [1, 2]\n"
                                   "baseline: none\n");
  const auto sweep = ReadSweep(path);
  ASSERT_TRUE(sweep.ok()) << sweep.status();
  EXPECT_EQ(sweep->name, "codecs");
  EXPECT_EQ(sweep->text, "epochs: 3\n");
  EXPECT_EQ(sweep->baseline, "none");
  EXPECT_THAT(sweep->seeds, ElementsAre(1, 2));
  ASSERT_EQ(sweep->variants.size(), 2u);
  EXPECT_EQ(sweep->variants[1].name, "topk");
  EXPECT_EQ(sweep->variants[1].settings[0].value, "{codec: topk, ratio: 0.1}");
  EXPECT_EQ(sweep->variants[1].settings[0].place, path + ":5: ");
  ASSERT_EQ(sweep->axes.size(), 1u);
  EXPECT_EQ(sweep->axes[0][1].value, "1e-3");
}

TEST(SweepFileTest, TheExperimentMayStandInIt) {
  const auto sweep = ReadSweep(Written("s.yaml", "name: n\nexperiment: {epochs: 3, name: e}\n"));
  ASSERT_TRUE(sweep.ok()) << sweep.status();
  EXPECT_EQ(sweep->name, "n");
  EXPECT_EQ(sweep->text, "{epochs: 3, name: e}");
}

TEST(SweepFileTest, AnExperimentFileTakesGridsAndSeeds) {
  auto sweep = ReadSweep(Written("e.yaml", "epochs: 3\nname: other\n"));
  ASSERT_TRUE(sweep.ok()) << sweep.status();
  EXPECT_EQ(sweep->name, "e");
  ASSERT_TRUE(
      AddGrid("compression.gradients={codec: topk, ratio: 0.1},{codec: none}", &*sweep).ok());
  ASSERT_TRUE(SetSeeds({"4", "5"}, &*sweep).ok());
  EXPECT_EQ(sweep->axes[0][0].value, "{codec: topk, ratio: 0.1}");
  EXPECT_EQ(sweep->axes[0][1].value, "{codec: none}");
  EXPECT_THAT(sweep->seeds, ElementsAre(4, 5));
}

TEST(SweepFileTest, RefusesWhatIsNoSweep) {
  EXPECT_THAT(ErrorOf("experiment: {epochs: 1}\nrow: {a: {epochs: 2}}\n"),
              HasSubstr(":2: row: unknown field; did you mean rows? Fields of a sweep: "));
  EXPECT_THAT(ErrorOf("epochs: 1\naxes: {epochs: [1]}\n"),
              HasSubstr(":2: axes without experiment"));
  EXPECT_THAT(ErrorOf("experiment: nowhere.yaml\n"), HasSubstr("nowhere.yaml: cannot be read"));
  EXPECT_THAT(ErrorOf("experiment: {epochs: 1}\nrows: {}\n"), HasSubstr(":2: rows: want a map"));
  EXPECT_THAT(ErrorOf("experiment: {epochs: 1}\nrows: {a: 1}\n"),
              HasSubstr(":2: rows: a: want a map from fields to values"));
}

TEST(SweepFileTest, IsNamedAfterItsFileAsARunIs) {
  EXPECT_EQ(ReadSweep(Written("my codecs (2).yaml", "epochs: 3\n"))->name, "my-codecs-2");
}

TEST(SweepFileTest, AFieldThatIsNoneIsNamedWithTheNearest) {
  EXPECT_THAT(ErrorOf("experiment: {epochs: 1}\naxes:\n  optimizer.lrr: [0.1]\n"),
              HasSubstr(":3: optimizer.lrr: unknown field; did you mean lr?"));
  EXPECT_THAT(ErrorOf("experiment: {epochs: 1}\nrows:\n  a:\n    epoch: 2\n"),
              HasSubstr(":4: epoch: unknown field; did you mean epochs?"));
  EXPECT_THAT(ErrorOf("experiment: {epochs: 1}\naxes: {epochs: [1, two]}\n"),
              HasSubstr(":2: epochs: met two, want a whole number"));
}

TEST(SweepFileTest, RefusesEmptyAndDoubleAxesAndSeeds) {
  EXPECT_THAT(ErrorOf("experiment: {epochs: 1}\naxes: {epochs: []}\n"),
              HasSubstr(":2: axis epochs: want a list of at least one value"));
  EXPECT_THAT(ErrorOf("experiment: {epochs: 1}\nseeds: []\n"), HasSubstr("at least one seed"));
  EXPECT_THAT(ErrorOf("experiment: {epochs: 1}\nseeds: [1, 1]\n"), HasSubstr("1 stands twice"));
  EXPECT_THAT(ErrorOf("experiment: {epochs: 1}\nseeds: [-1]\n"), HasSubstr("-1, want whole"));
  Sweep sweep;
  ASSERT_TRUE(AddGrid("epochs=1", &sweep).ok());
  EXPECT_EQ(AddGrid("epochs=2", &sweep).message(), "--grid epochs=2: axis epochs stands twice");
  EXPECT_EQ(AddGrid("seed=", &sweep).message(),
            "--grid seed=: axis seed: want a list of at least one value");
  EXPECT_EQ(AddGrid("seed", &sweep).message(), "--grid seed: want FIELD=VALUE,VALUE");
  EXPECT_THAT(std::string(SetSeeds({"9223372036854775808"}, &sweep).message()),
              HasSubstr("want whole numbers from 0 to 9223372036854775807"));
}

}  // namespace
}  // namespace thinwire
