#include "coordinator/report/page.h"

#include "coordinator/report/runs_testing.h"
#include "gmock/gmock.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Report Of(const std::vector<ReportedRun>& runs) {
  auto report = ReportOf(runs, {});
  EXPECT_TRUE(report.ok()) << report.status();
  return *std::move(report);
}

TEST(Page, LoadsNothingAndEscapesNames) {
  ReportedRun run = MadeUpRun("a<b", 1, {0.5, 0.75}, 4);
  const std::string html = Page(Of({run}));
  EXPECT_THAT(html, AllOf(HasSubstr("<td class=\"word\">a&lt;b</td>"), Not(HasSubstr("a<b"))));
  for (const char* loading : {"http://", "https://", "src=", "<link", "@import", "url("}) {
    EXPECT_THAT(html, Not(HasSubstr(loading)));
  }
  EXPECT_THAT(html, AllOf(HasSubstr("prefers-color-scheme: dark"), HasSubstr("@media print"),
                          HasSubstr("<td>75.00</td>"), HasSubstr("aria-label=\"Test accuracy\"")));
}

TEST(Page, OfARunWithoutResultsHasNoCharts) {
  ReportedRun run = MadeUpRun("begun", 1, {}, 4);
  EXPECT_THAT(Page(Of({run})), AllOf(Not(HasSubstr("<svg")), HasSubstr("begun")));
}

TEST(Markdown, EscapesBars) {
  ReportedRun run = MadeUpRun("a|b", 1, {0.5}, 4);
  EXPECT_THAT(ReportMarkdown(Of({run})),
              HasSubstr("| a\\|b | 1 | 50.00 | 45.00 | 50.00 | 1 | 8 | 10 |"));
}

TEST(Csv, HasARowPerRunAndEpoch) {
  ReportedRun run = MadeUpRun("a,\"b\"", 3, {0.5, 0.75}, 8);
  const std::string csv = ReportCsv({run});
  EXPECT_THAT(csv,
              HasSubstr("\"runs/a,\"\"b\"\"-seed3\",\"a,\"\"b\"\"\",3,completed,2,0.25,0,0,0.75,"
                        "0,0.7,8000000,2000000,10\n"));
}

}  // namespace
}  // namespace thinwire
