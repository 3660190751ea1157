#include "coordinator/results/outcome.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/results/paired.h"

namespace thinwire {
namespace {

using Value = std::optional<double> Outcome::*;

// Returns the factor to per cent for an accuracy, or to nats for a loss.
double Scale(const Outcome& outcome) { return outcome.is_loss ? 1 : 100; }
int Digits(const Outcome& outcome) { return outcome.is_loss ? 4 : 2; }

std::vector<Outcome> OfRow(const std::vector<Outcome>& outcomes, const std::string& row) {
  std::vector<Outcome> found;
  std::copy_if(outcomes.begin(), outcomes.end(), std::back_inserter(found),
               [&](const Outcome& outcome) { return outcome.row == row; });
  return found;
}

// Returns "97.12 ± 0.35", "97.12" for one run, "-" if none was evaluated.
std::string MeanText(const std::vector<Outcome>& row, Value inference) {
  std::vector<double> values;
  for (const Outcome& outcome : row) {
    if (outcome.*inference) values.push_back(*(outcome.*inference) * Scale(outcome));
  }
  if (values.empty()) return "-";
  const int digits = Digits(row[0]);
  const std::string mean = absl::StrFormat("%.*f", digits, MeanOf(values));
  if (values.size() < 2) return mean;
  return absl::StrCat(mean, " ± ", absl::StrFormat("%.*f", digits, DeviationOf(values)));
}

std::string BytesText(const std::vector<Outcome>& row) {
  std::vector<double> bytes;
  for (const Outcome& outcome : row) bytes.push_back(outcome.wire_bytes);
  return absl::StrFormat("%.3f MB", MeanOf(bytes) / 1e6);
}

// Returns the columns that `text` takes on a terminal: characters, not bytes.
size_t WidthOf(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

using Line = std::vector<std::string>;

// Aligns the first column left and the others right.
std::string Aligned(const std::vector<Line>& lines) {
  std::vector<size_t> widths(lines[0].size(), 0);
  for (const Line& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], WidthOf(line[i]));
  }
  std::string text;
  for (const Line& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      const std::string blanks(widths[i] - WidthOf(line[i]), ' ');
      absl::StrAppend(&text, i == 0 ? "" : "  ", i == 0 ? line[i] + blanks : blanks + line[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

}  // namespace

absl::StatusOr<Outcome> OutcomeOf(const std::string& row, const Summary& summary) {
  if (summary.status() != "completed") {
    return absl::InvalidArgumentError(
        absl::StrCat(row, ": the run is not completed, its status is ", summary.status()));
  }
  Outcome outcome;
  outcome.row = row;
  outcome.seed = summary.seed();
  for (const EpochRecord& epoch : summary.epochs()) {
    if (!epoch.has_test()) continue;
    const TestRecord& test = epoch.test();
    const Measured& any = test.has_compressed() ? test.compressed() : test.uncompressed();
    outcome.is_loss = any.has_perplexity() || !any.has_accuracy();
    const auto value = [&](bool is_there, const Measured& measured) -> std::optional<double> {
      if (!is_there) return std::nullopt;
      return outcome.is_loss ? measured.loss() : measured.accuracy();
    };
    outcome.compressed = value(test.has_compressed(), test.compressed());
    outcome.uncompressed = value(test.has_uncompressed(), test.uncompressed());
  }
  for (const BoundaryRecord& boundary : summary.boundaries()) {
    outcome.wire_bytes += static_cast<double>(boundary.activations().wire_bytes()) +
                          static_cast<double>(boundary.gradients().wire_bytes());
  }
  outcome.wire_bytes += static_cast<double>(summary.replicas().contributions().wire_bytes() +
                                            summary.replicas().average().wire_bytes());
  return outcome;
}

std::string PairedText(const std::vector<Outcome>& left, const std::vector<Outcome>& right,
                       Value inference) {
  if (left.empty()) return "";
  const auto by_seed = [&](const std::vector<Outcome>& outcomes) {
    BySeed values;
    for (const Outcome& outcome : outcomes) {
      if (outcome.*inference) values.emplace_back(outcome.seed, *(outcome.*inference));
    }
    return values;
  };
  return EstimateText(PairedDifferences(by_seed(left), by_seed(right), Scale(left[0])),
                      Digits(left[0]));
}

std::string OutcomeTable(const std::vector<Outcome>& outcomes, const std::string& baseline) {
  if (outcomes.empty()) return "";
  const bool is_loss = outcomes[0].is_loss;
  const std::vector<Outcome> base = OfRow(outcomes, baseline);
  std::vector<Line> lines = {{is_loss ? "test loss" : "test accuracy, %", "runs", "with codecs",
                              "without", "sent", absl::StrCat("with codecs, less ", baseline)}};
  for (const Outcome& outcome : outcomes) {
    const bool is_told = std::any_of(lines.begin() + 1, lines.end(),
                                     [&](const Line& line) { return line[0] == outcome.row; });
    if (is_told) continue;
    const std::vector<Outcome> row = OfRow(outcomes, outcome.row);
    lines.push_back({outcome.row, absl::StrCat(row.size()), MeanText(row, &Outcome::compressed),
                     MeanText(row, &Outcome::uncompressed), BytesText(row),
                     outcome.row == baseline ? "" : PairedText(base, row, &Outcome::compressed)});
  }
  return Aligned(lines) +
         "mean ± standard deviation of the runs; differences paired by seed, with 95 % intervals\n";
}

}  // namespace thinwire
