#include "coordinator/results/outcome.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/results/paired.h"

namespace thinwire {
namespace {

using Json = nlohmann::ordered_json;
using Inference = std::optional<double> Outcome::*;

// The number of such a path, if there is one.
std::optional<double> NumberAt(const Json& json, const std::vector<std::string>& path) {
  const Json* at = &json;
  for (const std::string& step : path) {
    if (!at->is_object() || !at->contains(step)) return std::nullopt;
    at = &(*at)[step];
  }
  if (!at->is_number()) return std::nullopt;
  return at->get<double>();
}

// Per cent of an accuracy, nats of a loss.
double Scale(const Outcome& outcome) { return outcome.is_loss ? 1 : 100; }
int Digits(const Outcome& outcome) { return outcome.is_loss ? 4 : 2; }

std::vector<Outcome> OfRow(const std::vector<Outcome>& outcomes, const std::string& row) {
  std::vector<Outcome> found;
  std::copy_if(outcomes.begin(), outcomes.end(), std::back_inserter(found),
               [&](const Outcome& outcome) { return outcome.row == row; });
  return found;
}

// "97.12 ± 0.35", "97.12" of one run, "-" where none was evaluated.
std::string MeanText(const std::vector<Outcome>& row, Inference inference) {
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

// Columns of a terminal: characters, not bytes.
size_t WidthOf(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

using Line = std::vector<std::string>;

// The first column begins at the left, the others end at the right.
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

absl::StatusOr<Outcome> OutcomeOf(const std::string& row, const Json& summary) {
  if (summary.value("status", "") != "completed") {
    return absl::InvalidArgumentError(absl::StrCat(
        row, ": the run is not completed, its status is ", summary.value("status", "")));
  }
  Outcome outcome;
  outcome.row = row;
  outcome.seed = summary["seed"].get<uint64_t>();
  for (const Json& epoch : summary["epochs"]) {
    if (!epoch.contains("test") || !epoch["test"].is_object()) continue;
    const Json& test = epoch["test"];
    outcome.is_loss = NumberAt(test, {"compressed", "perplexity"}) ||
                      NumberAt(test, {"uncompressed", "perplexity"});
    const char* measure = outcome.is_loss ? "loss" : "accuracy";
    outcome.compressed = NumberAt(test, {"compressed", measure});
    outcome.uncompressed = NumberAt(test, {"uncompressed", measure});
  }
  for (const Json& boundary : summary["boundaries"]) {
    for (const char* direction : {"activations", "gradients"}) {
      outcome.wire_bytes += NumberAt(boundary, {direction, "wire_bytes"}).value_or(0);
    }
  }
  return outcome;
}

std::string PairedText(const std::vector<Outcome>& left, const std::vector<Outcome>& right,
                       Inference inference) {
  std::vector<double> differences;
  for (const Outcome& l : left) {
    for (const Outcome& r : right) {
      if (l.seed != r.seed || !(l.*inference) || !(r.*inference)) continue;
      differences.push_back((*(r.*inference) - *(l.*inference)) * Scale(l));
    }
  }
  const auto estimate = PairedEstimate(differences);
  if (!estimate.ok()) return "";
  const int digits = Digits(left[0]);
  const std::string mean = absl::StrFormat("%+.*f", digits, estimate->mean);
  if (std::isnan(estimate->low)) return mean;
  return absl::StrCat(
      mean, absl::StrFormat(" [%+.*f, %+.*f]", digits, estimate->low, digits, estimate->high));
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
