#include "coordinator/session/joins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kHere[] = "ipv4:127.0.0.1:5", kElsewhere[] = "ipv4:10.0.0.9:5";

BuildInfo BuildOf(const std::string& id = "build", const std::string& isa = "AVX2") {
  BuildInfo build;
  build.set_build_id(id);
  build.set_onednn_isa(isa);
  build.set_simd_target("AVX2");
  return build;
}

JoinRequest OfferOf(const std::string& address, const BuildInfo& build = BuildOf()) {
  JoinRequest offer;
  offer.set_address(address);
  *offer.mutable_build() = build;
  return offer;
}

ConfigureResponse Data(uint64_t digest = 7, const std::string& device = "") {
  ConfigureResponse data;
  data.set_train_digest(digest);
  data.mutable_device()->set_name("cpu");
  data.mutable_device()->set_model(device);
  return data;
}

class JoinsTest : public ::testing::Test {
 protected:
  JoinsTest() {
    joins_.SetFirst(BuildOf());
    joins_.SetEnds(Data(), Data());
    joins_.SetCarrying({"a:1", "b:1"});
  }
  std::string Refusal(const JoinRequest& offer) {
    return std::string(joins_.Offer(offer).status().message());
  }
  absl::Status Admit(const std::string& address, const TriedServer& tried = {BuildOf(), {Data()}}) {
    return joins_.Admit(address, tried);
  }

  Joins joins_{"digits-1a2b", /*takes_others=*/false};
};

TEST_F(JoinsTest, WhoWasTriedIsAdmittedWhileItIsConnected) {
  ASSERT_FALSE(*joins_.Offer(OfferOf("x:1")));
  EXPECT_THAT(joins_.TakeAdmitted(), IsEmpty());
  ASSERT_TRUE(Admit("x:1").ok());
  EXPECT_THAT(joins_.TakeAdmitted(), ElementsAre("x:1"));
  EXPECT_THAT(joins_.TakeAdmitted(), IsEmpty()) << "once";
  EXPECT_TRUE(joins_.IsConnected("x:1"));
  joins_.Withdraw("x:1");
  EXPECT_FALSE(joins_.IsConnected("x:1"));
}

TEST_F(JoinsTest, AnotherBuildAndOtherInstructionsAreRefusedByName) {
  EXPECT_THAT(Refusal(OfferOf("x:1", BuildOf("other"))),
              AllOf(HasSubstr("x:1 is of build \"other\", run digits-1a2b of build \"build\""),
                    HasSubstr("--allow_other_build")));
  EXPECT_THAT(Refusal(OfferOf("x:1", BuildOf("build", "AVX512"))),
              AllOf(HasSubstr("x:1 computes with AVX512 (oneDNN) and AVX2 (Highway)"),
                    HasSubstr("run digits-1a2b with AVX2 (oneDNN)")));
  ASSERT_TRUE(joins_.Offer(OfferOf("x:1")).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Admit("x:1", {BuildOf("other"), {Data()}})))
      << "what the server answers counts, not what it says";
  Joins all("digits-1a2b", /*takes_others=*/true);
  all.SetFirst(BuildOf());
  all.SetEnds(Data(), Data());
  EXPECT_TRUE(all.Offer(OfferOf("x:1", BuildOf("other", "AVX512"))).ok());
}

TEST_F(JoinsTest, OtherDataAndAnotherDeviceAreRefusedByName) {
  ASSERT_TRUE(joins_.Offer(OfferOf("x:1")).ok());
  EXPECT_THAT(std::string(Admit("x:1", {BuildOf(), {Data(), Data(8)}}).message()),
              AllOf(HasSubstr("x:1 reads other data than run digits-1a2b"),
                    HasSubstr("digest 0000000000000008"), HasSubstr("digest 0000000000000007")));
  EXPECT_THAT(std::string(Admit("x:1", {BuildOf(), {Data(7, "NVIDIA H200")}}).message()),
              HasSubstr("x:1 computes on cpu NVIDIA H200, run digits-1a2b on cpu"));
}

TEST_F(JoinsTest, AnAddressIsOfOneServer) {
  EXPECT_THAT(Refusal(OfferOf("a:1")), HasSubstr("run digits-1a2b has a server at a:1"));
  JoinRequest again = OfferOf("a:1");
  again.set_run("digits-1a2b");
  EXPECT_TRUE(*joins_.Offer(again)) << "it has a stage, and is connected again";
  EXPECT_TRUE(absl::IsAlreadyExists(joins_.Offer(again).status()));
  ASSERT_TRUE(joins_.Offer(OfferOf("x:1")).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(joins_.Offer(OfferOf("x:1")).status()));
}

TEST_F(JoinsTest, AFloodIsBoundedAndLeavesNothing) {
  for (int round = 0; round < 20; ++round) {
    for (size_t i = 0; i < Joins::kMost; ++i) {
      const std::string address = absl::StrCat("x", round, ":", i + 1);
      ASSERT_TRUE(joins_.Offer(OfferOf(address)).ok());
      ASSERT_TRUE(Admit(address).ok());
    }
    EXPECT_THAT(Refusal(OfferOf("y:1")), HasSubstr("has 64 servers that joined, want at most 64"));
    for (size_t i = 0; i < Joins::kMost; ++i) joins_.Withdraw(absl::StrCat("x", round, ":", i + 1));
    EXPECT_THAT(joins_.TakeAdmitted(), IsEmpty());
  }
}

TEST_F(JoinsTest, WhoIsLostMayComeBackAndWhoIsDismissedMayNot) {
  ASSERT_TRUE(joins_.Offer(OfferOf("x:1")).ok());
  ASSERT_TRUE(joins_.Offer(OfferOf("y:1")).ok());
  EXPECT_FALSE(*joins_.HasEnded("x:1"));
  joins_.Lose({"x:1"});
  joins_.Dismiss("y:1", absl::NotFoundError("no file"));
  EXPECT_TRUE(absl::IsUnavailable(joins_.HasEnded("x:1").status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(joins_.HasEnded("y:1").status()));
  joins_.Withdraw("x:1");
  joins_.Withdraw("y:1");
  EXPECT_TRUE(joins_.Offer(OfferOf("x:1")).ok());
  EXPECT_EQ(Refusal(OfferOf("y:1")), "run digits-1a2b cannot use y:1: no file");
}

TEST_F(JoinsTest, NobodyIsTakenInBeforeTheRunBeginsOrAfterItsEnd) {
  Joins early("digits-1a2b", /*takes_others=*/false);
  early.SetFirst(BuildOf());
  EXPECT_TRUE(absl::IsUnavailable(early.Offer(OfferOf("x:1")).status()));
  ASSERT_TRUE(joins_.Offer(OfferOf("x:1")).ok());
  joins_.End();
  EXPECT_TRUE(*joins_.HasEnded("x:1"));
  EXPECT_TRUE(absl::IsUnavailable(joins_.Offer(OfferOf("y:1")).status()));
}

TEST(CheckOfferedTest, WantsAnAddressThatOthersReach) {
  EXPECT_TRUE(CheckOffered("10.0.0.9:4700", kElsewhere).ok());
  EXPECT_TRUE(CheckOffered("node3:4700", kElsewhere).ok());
  EXPECT_TRUE(CheckOffered("127.0.0.1:4700", kHere).ok());
  for (const char* const bad : {"0.0.0.0:4700", "[::]:4700", "*:4700", "node3:0"}) {
    EXPECT_THAT(std::string(CheckOffered(bad, kElsewhere).message()),
                AllOf(HasSubstr(bad), HasSubstr("--advertise")));
  }
  EXPECT_THAT(std::string(CheckOffered("127.0.0.1:4700", kElsewhere).message()),
              HasSubstr("calls from ipv4:10.0.0.9:5"));
  EXPECT_FALSE(CheckOffered("unix:/tmp/x", kHere).ok());
  EXPECT_FALSE(CheckOffered("", kHere).ok());
  EXPECT_FALSE(CheckOffered(std::string(1000, 'x') + ":1", kHere).ok());
}

}  // namespace
}  // namespace thinwire
