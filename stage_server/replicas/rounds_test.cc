#include "stage_server/replicas/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;

// Returns what happens behind each step of an epoch: ">0" where fragment 0 is sent, "<0" where its
// result is taken.
std::vector<std::string> Course(const ReplicasSpec& replicas, int64_t steps) {
  std::vector<std::string> course;
  for (int64_t place = 1; place <= steps; ++place) {
    std::string& behind = course.emplace_back();
    for (const int f : FragmentsSent(replicas, {place, steps})) absl::StrAppend(&behind, ">", f);
    for (const int f : FragmentsTaken(replicas, {place, steps})) absl::StrAppend(&behind, "<", f);
  }
  return course;
}

ReplicasSpec Of(int64_t every, int fragments, int64_t overlap) {
  ReplicasSpec replicas;
  replicas.sync = ReplicaSync::kLocal;
  replicas.every = every;
  replicas.fragments = fragments;
  replicas.overlap = overlap;
  return replicas;
}

TEST(RoundsTest, EachRoundEndsWithAnExchangeAndSoDoesTheEpoch) {
  EXPECT_THAT(Course(Of(3, 1, 0), 7), ElementsAre("", "", ">0<0", "", "", ">0<0", ">0<0"));
  EXPECT_THAT(Course(Of(1, 1, 0), 2), ElementsAre(">0<0", ">0<0"));
  EXPECT_THAT(Course(Of(100, 1, 0), 2), ElementsAre("", ">0<0"));
}

TEST(RoundsTest, FragmentsTakeTurns) {
  EXPECT_THAT(Course(Of(4, 2, 0), 7), ElementsAre("", ">1<1", "", ">0<0", "", ">1<1", ">0>1<0<1"));
  EXPECT_THAT(Course(Of(3, 3, 0), 4), ElementsAre(">1<1", ">2<2", ">0<0", ">0>1>2<0<1<2"));
}

TEST(RoundsTest, ResultsAreTakenLaterButForTheEpochsEnd) {
  EXPECT_THAT(Course(Of(4, 2, 1), 6), ElementsAre("", ">1", "<1", ">0", "<0", ">0>1<0<1"));
  EXPECT_THAT(Course(Of(2, 1, 1), 4), ElementsAre("", ">0", "<0", ">0<0"));
}

}  // namespace
}  // namespace thinwire
