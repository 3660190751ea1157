#include "coordinator/probe/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

void Set(double mean, double sd, Spread* spread) {
  spread->set_mean(mean);
  if (sd >= 0) spread->set_sd(sd);
}

void AddRow(const std::string& compressed, double bits, double error, ProbeReport* report) {
  ProbeRow* row = report->add_rows();
  row->set_compressed(compressed);
  row->set_activations(compressed == "backward" ? "none" : "fp16");
  row->set_gradients(compressed == "forward" ? "none" : "topk(ratio=0.1, scope=sample)");
  row->set_bits_per_element(bits);
  row->set_boundary_error(error);
  for (ProbeMeasure* measure : {row->mutable_all(), row->add_segments()}) {
    Set(0.5, 0.25, measure->mutable_cosine());
    Set(1, -1, measure->mutable_relative_error());
    Set(2, -1, measure->mutable_norm_ratio());
  }
  if (compressed != "both") return;
  Set(3, -1, row->mutable_given_forward()->mutable_relative_error());
}

ProbeReport TwoRows() {
  ProbeReport report;
  report.set_name("tiny");
  report.add_segments("stem");
  report.add_cuts("stem");
  AddRow("forward", 16, 0.001, &report);
  AddRow("both", 4, 0.5, &report);
  return report;
}

TEST(ProbeTableTest, RowsAreSortedByBitsAndByTheBoundarysError) {
  const std::string text = ProbeMarkdown(TwoRows());
  const std::string coarse =
      "| 4.000 | 0.5000 | both | `fp16 \\| topk(ratio=0.1, scope=sample)` | 0.5000 ± 0.2500 | "
      "1.0000 | 2.0000 | 3.0000 |\n";
  const std::string fine =
      "| 16.000 | 0.0010 | forward | `fp16` | 0.5000 ± 0.2500 | 1.0000 | 2.0000 |  |\n";
  EXPECT_THAT(text, HasSubstr(coarse + fine));  // by bits
  EXPECT_THAT(text, HasSubstr(fine + coarse));  // by error
  EXPECT_THAT(text, HasSubstr("| forward | `fp16` | 0.5000, 1.0000 |"));
}

TEST(ProbeTableTest, ABudgetIsShownByItsShares) {
  ProbeReport report = TwoRows();
  EXPECT_THAT(ProbeMarkdown(report), Not(HasSubstr("Shares")));
  report.mutable_rows(0)->set_cut("stem");
  ProbeBudget* const budget = report.mutable_budget();
  budget->set_bits_per_element(1.25);
  budget->set_relative_error(0.25);
  budget->set_equal_relative_error(0.5);
  ProbeShare* const share = budget->add_shares();
  share->set_cut("stem");
  share->set_codec("ecsq(rate=1)");
  share->set_relative_error(0.25);
  const std::string text = ProbeMarkdown(report);
  EXPECT_THAT(text,
              HasSubstr("## Shares of 1.25 bits per element\n\nWhat the gradient's error is to "
                        "be, if errors are independent: 0.2500; 0.5000 with equal rates.\n"));
  EXPECT_THAT(text, HasSubstr("| stem | activation | `ecsq(rate=1)` | 0.2500 |\n"));
  EXPECT_THAT(text, HasSubstr("| forward at stem | `fp16` |"));
}

TEST(ProbeTableTest, CsvHasALinePerRowAndPart) {
  const std::string text = ProbeCsv(TwoRows());
  EXPECT_THAT(text, HasSubstr("forward,\"fp16\",\"none\",\"all\",16,0.001,0.5,0.25,1,,2,\r\n"));
  EXPECT_THAT(text, HasSubstr("both,\"fp16\",\"topk(ratio=0.1, scope=sample)\",\"stem\",4,0.5,"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 2 * 2);
}

}  // namespace
}  // namespace thinwire
