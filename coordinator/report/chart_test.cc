#include "coordinator/report/chart.h"

#include "gmock/gmock.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Ticks, AreRoundAndEncloseTheValues) {
  EXPECT_THAT(RoundTicks(0, 10, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(RoundTicks(41.2, 79.4, 4), ElementsAre(40, 50, 60, 70, 80));
  EXPECT_THAT(RoundTicks(-1, 1, 2), ElementsAre(-1, 0, 1));
  EXPECT_EQ(RoundTicks(5, 5, 4).size(), 2u) << "one value has room, too";
  EXPECT_THAT(LogTicks(3, 40), ElementsAre(2, 5, 10, 20, 50));
  EXPECT_THAT(LogTicks(3, 4000), ElementsAre(1, 10, 100, 1000, 10000));
  EXPECT_THAT(LogTicks(10, 10), ElementsAre(10, 20));
}

Chart TwoLines() {
  Chart chart;
  chart.title = "<Accuracy>";
  chart.series.resize(2);
  chart.series[0].name = "a & b";
  chart.series[0].points = {{0, 0, ""}, {10, 10, ""}};
  chart.series[1].name = "one";
  chart.series[1].colour = 9;
  chart.series[1].points = {{10, 5, "half"}};
  return chart;
}

TEST(Svg, HasALineFromCornerToCornerAndAMark) {
  const std::string svg = Svg(TwoLines());
  EXPECT_THAT(svg, HasSubstr("<path class=\"line c0\" d=\"M58.0 284.0L696.0 34.0\">"));
  EXPECT_THAT(svg, HasSubstr("<circle class=\"mark c1\" cx=\"696.0\" cy=\"159.0\" r=\"4\">"));
  EXPECT_THAT(svg, HasSubstr("text-anchor=\"end\" class=\"label\">half</text>"));
}

TEST(Svg, EscapesWhatItIsGiven) {
  const std::string svg = Svg(TwoLines());
  EXPECT_THAT(svg, AllOf(HasSubstr("&lt;Accuracy&gt;"), HasSubstr("a &amp; b"),
                         Not(HasSubstr("<Accuracy>"))));
}

TEST(Svg, OfNothingIsNothing) { EXPECT_EQ(Svg({}), ""); }

}  // namespace
}  // namespace thinwire
