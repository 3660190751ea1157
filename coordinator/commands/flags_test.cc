#include "coordinator/commands/flags.h"

#include "gmock/gmock.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(AssumptionsFromTest, AreTheFlagsOrSeveralUsualRates) {
  const auto usual = AssumptionsFrom(std::nullopt, {});
  ASSERT_TRUE(usual.ok()) << usual.status();
  EXPECT_THAT(usual->bits_per_second, SizeIs(5));
  const auto given = AssumptionsFrom(50, {/*rtt_ms=*/100, "private", /*cores=*/4});
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_THAT(given->bits_per_second, ElementsAre(50e6));
  EXPECT_EQ(given->rtt_ms, 100);
  EXPECT_EQ(given->nic, Nic::kPrivate);
  EXPECT_EQ(given->cores, 4);
}

TEST(AssumptionsFromTest, NameTheFlagThatIsWrong) {
  EXPECT_THAT(std::string(AssumptionsFrom(50, {0, "own", 0}).status().message()),
              HasSubstr("--nic: unknown \"own\""));
  EXPECT_EQ(AssumptionsFrom(50, {-1, "shared", 0}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(CheckJobsTest, RefusesThemBesideStagesThatAreNamed) {
  EXPECT_TRUE(CheckJobs(1, {"a:1", "b:1"}).ok());
  EXPECT_TRUE(CheckJobs(3, {}).ok());
  EXPECT_THAT(std::string(CheckJobs(2, {"a:1"}).message()), HasSubstr("--jobs with --stages: "));
}

TEST(FormatForTest, IsTheFlagsThenTheEndingsThenTheOther) {
  EXPECT_EQ(FormatFor("json", "a.csv", {"csv"}, "md"), "json");
  EXPECT_EQ(FormatFor("", "a.csv", {"json", "csv"}, "md"), "csv");
  EXPECT_EQ(FormatFor("", "a.txt", {"json", "csv"}, "md"), "md");
  EXPECT_EQ(FormatFor("", "csv", {"json", "csv"}, "md"), "md");
}

}  // namespace
}  // namespace thinwire
