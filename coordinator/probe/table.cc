#include "coordinator/probe/table.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace thinwire {
namespace {

std::string CodecOf(const ProbeRow& row) {
  if (row.compressed() == "forward") return row.activations();
  if (row.compressed() == "backward" || row.activations() == row.gradients()) {
    return row.gradients();
  }
  return absl::StrCat(row.activations(), " \\| ", row.gradients());
}

// Returns "forward", or "forward at layer1".
std::string Where(const ProbeRow& row) {
  return row.cut().empty() ? row.compressed() : absl::StrCat(row.compressed(), " at ", row.cut());
}

std::string Shown(const Spread& spread, int digits) {
  std::string text = absl::StrFormat("%.*f", digits, spread.mean());
  if (spread.has_sd()) absl::StrAppendFormat(&text, " ± %.*f", digits, spread.sd());
  return text;
}

std::string Heading(const ProbeReport& report) {
  std::string text =
      absl::StrFormat("# Probe: %s after %d epochs\n\n", report.name(), report.epochs_trained());
  absl::StrAppendFormat(&text,
                        "Parameter gradients of %d batches of %d samples (%d microbatches, %s) of "
                        "the next epoch, each "
                        "with codecs against the same without; mean ± standard deviation over "
                        "batches. %d parameters, "
                        "cuts behind %s. \"Given forward\": against the gradient with activations "
                        "compressed alone. Loss "
                        "%s.",
                        report.batches(), report.batch_size(), report.microbatches(),
                        report.precision(), report.parameters(), absl::StrJoin(report.cuts(), ", "),
                        Shown(report.loss(), 3));
  if (report.has_cosine_between_batches()) {
    absl::StrAppendFormat(&text, " Gradients of different batches without codecs: cosine %s.",
                          Shown(report.cosine_between_batches(), 3));
  }
  absl::StrAppendFormat(&text, "\n\nWeights from `%s`; build %s, %s, %s, %d threads.\n",
                        report.source(), report.commit(), report.cpu_model(), report.simd_target(),
                        report.threads());
  for (const std::string& skipped : report.skipped()) {
    absl::StrAppend(&text, "\nSkipped: ", skipped, "\n");
  }
  for (const std::string& warning : report.warnings()) {
    absl::StrAppend(&text, "\nWarning: ", warning, "\n");
  }
  return text;
}

using Key = std::function<double(const ProbeRow&)>;

std::string Table(const ProbeReport& report, const Key& key) {
  std::vector<const ProbeRow*> rows;
  for (const ProbeRow& row : report.rows()) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const ProbeRow* a, const ProbeRow* b) { return key(*a) < key(*b); });
  std::string text =
      "| bits per element | boundary error | compressed | codec | cosine | error | norm ratio | "
      "error given forward |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const ProbeRow* row : rows) {
    const std::string given =
        row->has_given_forward() ? Shown(row->given_forward().relative_error(), 4) : "";
    absl::StrAppendFormat(
        &text, "| %.3f | %.4f | %s | `%s` | %s | %s | %s | %s |\n", row->bits_per_element(),
        row->boundary_error(), Where(*row), CodecOf(*row), Shown(row->all().cosine(), 4),
        Shown(row->all().relative_error(), 4), Shown(row->all().norm_ratio(), 4), given);
  }
  return text;
}

std::string SegmentTable(const ProbeReport& report) {
  std::string text = "| compressed | codec |", rule = "|---|---|";
  for (const std::string& segment : report.segments()) {
    absl::StrAppend(&text, " ", segment, " |");
    absl::StrAppend(&rule, "---|");
  }
  absl::StrAppend(&text, "\n", rule, "\n");
  for (const ProbeRow& row : report.rows()) {
    absl::StrAppend(&text, "| ", Where(row), " | `", CodecOf(row), "` |");
    for (const ProbeMeasure& segment : row.segments()) {
      absl::StrAppendFormat(&text, " %.4f, %.4f |", segment.cosine().mean(),
                            segment.relative_error().mean());
    }
    text += "\n";
  }
  return text;
}

std::string ShareTable(const ProbeBudget& budget) {
  std::string text = absl::StrFormat(
      "## Shares of %.4g bits per element\n\nWhat the gradient's error is to be, if errors are "
      "independent: %.4f; %.4f with equal rates.\n\n"
      "| cut | direction | codec | error through it alone |\n|---|---|---|---|\n",
      budget.bits_per_element(), budget.relative_error(), budget.equal_relative_error());
  for (const ProbeShare& share : budget.shares()) {
    absl::StrAppendFormat(&text, "| %s | %s | `%s` | %.4f |\n", share.cut(),
                          share.gradient() ? "gradient" : "activation", share.codec(),
                          share.relative_error());
  }
  return text;
}

std::string Quoted(const std::string& text) {
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

std::string Cells(const Spread& spread) {
  return absl::StrCat(spread.mean(), ",", spread.has_sd() ? absl::StrCat(spread.sd()) : "");
}

}  // namespace

std::string ProbeMarkdown(const ProbeReport& report) {
  const std::string shares =
      report.has_budget() ? absl::StrCat("\n", ShareTable(report.budget())) : "";
  return absl::StrCat(Heading(report), shares, "\n## By bits\n\n",
                      Table(report, [](const ProbeRow& row) { return row.bits_per_element(); }),
                      "\n## By boundary error\n\n",
                      Table(report, [](const ProbeRow& row) { return row.boundary_error(); }),
                      "\n## By segment\n\nCosine, error; means over batches.\n\n",
                      SegmentTable(report));
}

std::string ProbeCsv(const ProbeReport& report) {
  std::string text =
      "compressed,activations,gradients,part,bits_per_element,boundary_error,cosine,cosine_sd,"
      "relative_error,relative_error_sd,norm_ratio,norm_ratio_sd\r\n";
  for (const ProbeRow& row : report.rows()) {
    const auto line = [&](const std::string& part, const ProbeMeasure& measure) {
      absl::StrAppend(&text, Where(row), ",", Quoted(row.activations()), ",",
                      Quoted(row.gradients()), ",", Quoted(part), ",", row.bits_per_element(), ",",
                      row.boundary_error(), ",");
      absl::StrAppend(&text, Cells(measure.cosine()), ",", Cells(measure.relative_error()), ",",
                      Cells(measure.norm_ratio()), "\r\n");
    };
    line("all", row.all());
    for (int i = 0; i < row.segments_size(); ++i) line(report.segments(i), row.segments(i));
  }
  return text;
}

}  // namespace thinwire
