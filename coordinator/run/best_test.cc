#include "coordinator/run/best.h"

#include "gtest/gtest.h"

namespace thinwire {
namespace {

TestRecord Tested(double loss, double accuracy) {
  TestRecord test;
  test.mutable_compressed()->set_loss(loss);
  test.mutable_compressed()->set_accuracy(accuracy);
  test.mutable_uncompressed()->set_loss(-1);
  return test;
}

class BestTest : public testing::Test {
 protected:
  bool Is(const std::string& by, const TestRecord& latest) const {
    return IsBest(by, latest, summary_.epochs(), now_.evaluations());
  }

  Summary summary_;
  EpochRecord now_;
};

TEST_F(BestTest, TheFirstIsTheBest) {
  EXPECT_TRUE(Is("loss", Tested(2, 0.1)));
  EXPECT_TRUE(Is("accuracy", Tested(2, 0.1)));
}

TEST_F(BestTest, WithoutItsMeasureNoneIs) {
  EXPECT_FALSE(Is("loss", TestRecord()));
  TestRecord scores;
  scores.mutable_compressed()->set_loss(1);
  EXPECT_FALSE(Is("accuracy", scores));
  EXPECT_TRUE(Is("loss", scores));
}

TEST_F(BestTest, ItIsBetterThanThoseOfEpochsAndOfSteps) {
  EpochRecord* const epoch = summary_.add_epochs();
  *epoch->mutable_test() = Tested(1.5, 0.5);
  *epoch->add_evaluations()->mutable_test() = Tested(1.4, 0.4);
  *now_.add_evaluations()->mutable_test() = Tested(1.3, 0.6);
  EXPECT_TRUE(Is("loss", Tested(1.2, 0.1)));
  EXPECT_FALSE(Is("loss", Tested(1.35, 0.9)));
  EXPECT_TRUE(Is("accuracy", Tested(9, 0.61)));
  EXPECT_FALSE(Is("accuracy", Tested(9, 0.55)));
}

TEST_F(BestTest, OfEqualOnesTheEarlierIs) {
  *summary_.add_epochs()->mutable_test() = Tested(1.5, 0.5);
  EXPECT_FALSE(Is("loss", Tested(1.5, 0.5)));
  EXPECT_FALSE(Is("accuracy", Tested(1, 0.5)));
}

TEST_F(BestTest, AnEpochWithoutEvaluationBeatsNothing) {
  summary_.add_epochs();
  EXPECT_TRUE(Is("loss", Tested(5, 0)));
}

}  // namespace
}  // namespace thinwire
