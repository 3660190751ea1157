#include "coordinator/evaluate/table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "coordinator/plan/table_text.h"

namespace thinwire {
namespace {

constexpr char kColumns[] = "%9s  %8s  %10s  %10s  %8s  %s\n";

std::string Heading(const EvaluateReport& report) {
  const std::string weights =
      report.weights().empty() ? "random initial weights" : "weights of " + report.weights();
  const std::string cuts =
      report.cuts().empty() ? "no cut" : absl::StrCat("cuts ", absl::StrJoin(report.cuts(), ", "));
  return Wrapped("", absl::StrCat(report.source(), ": ", weights, ", ", report.parameters(),
                                  " parameters, ", report.precision(), "; ", report.samples(),
                                  " samples of ", report.data(), "; ", cuts));
}

std::string AccuracyOf(const Measured& test) {
  if (test.has_scores()) return absl::StrFormat("rho %.3f", test.scores().spearman());
  return test.has_accuracy() ? absl::StrFormat("%.2f %%", 100 * test.accuracy()) : "-";
}

std::string LineOf(const EvaluateRow& row) {
  const Measured& test = row.test();
  return absl::StrFormat(
      kColumns, row.has_bits_per_element() ? absl::StrFormat("%.3f", row.bits_per_element()) : "-",
      absl::StrFormat("%.4f", test.loss()),
      row.has_loss_above_none() ? absl::StrFormat("%+.4f", row.loss_above_none()) : "-",
      test.has_perplexity() ? absl::StrFormat("%.3f", test.perplexity()) : "-", AccuracyOf(test),
      row.codec());
}

}  // namespace

std::string SaidOf(const EvaluateRow& row) {
  return absl::StrFormat("%s: loss %.4f, %.1f s", row.codec(), row.test().loss(), row.seconds());
}

std::string EvaluateTable(const EvaluateReport& report) {
  std::string table = absl::StrCat(Heading(report), "\n",
                                   absl::StrFormat(kColumns, "bits/elem", "loss", "above none",
                                                   "perplexity", "accuracy", "activations"));
  for (const EvaluateRow& row : report.rows()) absl::StrAppend(&table, LineOf(row));
  return table;
}

}  // namespace thinwire
