#include "coordinator/report/tables.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "coordinator/plan/break_even.h"
#include "coordinator/results/paired.h"

namespace thinwire {
namespace {

constexpr char kNothing[] = "–";

int Decimals(Measure measure) { return measure == Measure::kAccuracy ? 2 : 4; }

std::string Number(double value, Measure measure) {
  return absl::StrFormat("%.*f", Decimals(measure), value);
}

std::string SpreadText(const std::vector<double>& values, Measure measure) {
  if (values.empty()) return kNothing;
  const std::string mean = Number(Scaled(MeanOf(values), measure), measure);
  if (values.size() == 1) return mean;
  return absl::StrCat(mean, " ± ", Number(Scaled(DeviationOf(values), measure), measure));
}

// Returns `of(run)` for every run that has it.
template <typename Of>
std::vector<double> Values(const Configuration& configuration, const Of& of) {
  std::vector<double> values;
  for (const ReportedRun* run : configuration.judged) {
    if (const std::optional<double> value = of(*run)) values.push_back(*value);
  }
  return values;
}

// Returns the difference to the baseline, evaluated with codecs, over the seeds that both have.
std::string DifferenceText(const Configuration& one, const Configuration& baseline,
                           Measure measure) {
  if (&one == &baseline) return kNothing;
  const auto by_seed = [measure](const Configuration& configuration) {
    BySeed values;
    for (const ReportedRun* run : configuration.judged) {
      const auto value = Last(*run, Inference::kCompressed, measure);
      if (value) values.emplace_back(run->summary.seed(), *value);
    }
    return values;
  };
  const std::string text = EstimateText(
      PairedDifferences(by_seed(baseline), by_seed(one), Scaled(1, measure)), Decimals(measure));
  return text.empty() ? kNothing : text;
}

// Returns "1, 2, 3"; a run that did not complete shows its status: "3 (failed)".
std::string Seeds(const Configuration& configuration) {
  std::vector<std::string> seeds;
  for (const ReportedRun* run : configuration.runs) {
    const std::string& status = run->summary.status();
    seeds.push_back(status == "completed" ? absl::StrCat(run->summary.seed())
                                          : absl::StrCat(run->summary.seed(), " (", status, ")"));
  }
  return absl::StrJoin(seeds, ", ");
}

// Formats with `digits` significant digits, or with all digits before the point if there are more.
std::string Digits(double value, int digits) {
  return value >= std::pow(10, digits) ? absl::StrFormat("%.0f", value)
                                       : absl::StrFormat("%.*g", digits, value);
}

std::string Megabytes(const Configuration& configuration) {
  const std::vector<double> sent = Values(configuration, [](const ReportedRun& run) {
    const double bytes = Sent(run).wire_bytes;
    return bytes > 0 ? std::optional<double>(bytes) : std::nullopt;
  });
  return sent.empty() ? kNothing : Digits(MeanOf(sent) / 1e6, 4);
}

std::optional<double> SecondsPerEpoch(const ReportedRun& run) {
  double sum = 0;
  for (const EpochRecord& epoch : run.summary.epochs()) sum += epoch.seconds();
  const int epochs = run.summary.epochs_size();
  return epochs > 0 ? std::optional<double>(sum / epochs) : std::nullopt;
}

std::string ShortMean(const std::vector<double>& values) {
  return values.empty() ? kNothing : absl::StrFormat("%.3g", MeanOf(values));
}

std::string Smaller(const Configuration& configuration) {
  return ShortMean(Values(configuration, [](const ReportedRun& run) {
    const Traffic sent = Sent(run);
    return sent.wire_bytes > 0 ? std::optional<double>(sent.raw_bytes / sent.wire_bytes)
                               : std::nullopt;
  }));
}

std::string Rate(double bits_per_second) {
  if (bits_per_second <= 0) return kNothing;
  if (bits_per_second >= 1e9) return absl::StrFormat("%.3g Gbit/s", bits_per_second / 1e9);
  return absl::StrFormat("%.3g Mbit/s", bits_per_second / 1e6);
}

// Returns the break-even rate of all directions together, over the seeds.
double BreakEven(const Configuration& configuration) {
  double raw = 0, wire = 0, seconds = 0;
  for (const ReportedRun* run : configuration.judged) {
    for (const BoundaryRecord& boundary : run->summary.boundaries()) {
      for (const DirectionRecord* one : {&boundary.activations(), &boundary.gradients()}) {
        raw += static_cast<double>(one->raw_bytes());
        wire += static_cast<double>(one->wire_bytes());
        seconds += one->encode_seconds() + one->decode_seconds();
      }
    }
  }
  return BreakEvenBitsPerSecond(raw, wire, seconds);
}

// Removes the columns in which no row has a value.
void DropEmptyColumns(ReportTable* table) {
  for (size_t i = table->columns.size(); i-- > table->words;) {
    const bool is_empty =
        std::all_of(table->rows.begin(), table->rows.end(),
                    [i](const std::vector<std::string>& row) { return row[i] == kNothing; });
    if (!is_empty) continue;
    const auto at = static_cast<std::ptrdiff_t>(i);
    table->columns.erase(table->columns.begin() + at);
    for (std::vector<std::string>& row : table->rows) row.erase(row.begin() + at);
  }
}

// Sum over a configuration's seeds, for one direction of a cut.
struct DirectionSum {
  double bits = 0, error = 0, encode = 0, decode = 0, raw = 0;
  int runs = 0, measured = 0;
  std::string codec, feedback;

  void Add(const DirectionRecord& record) {
    codec = record.parameters();
    feedback = record.feedback();
    bits += record.wire_bits_per_element();
    ++runs;
    raw += static_cast<double>(record.raw_bytes());
    encode += record.encode_seconds();
    decode += record.decode_seconds();
    if (!record.has_relative_error()) return;
    error += record.relative_error();
    ++measured;
  }
  std::vector<std::string> Row(const std::string& name, const std::string& cut,
                               const char* direction) const {
    const auto speed = [this](double seconds) {
      return seconds > 0 ? Digits(raw / seconds / 1e9, 3) : std::string(kNothing);
    };
    const bool has_feedback = !feedback.empty() && feedback != "none";
    return {name,
            cut,
            direction,
            has_feedback ? absl::StrCat(codec, " + ", feedback) : codec,
            absl::StrFormat("%.2f", bits / runs),
            measured > 0 ? absl::StrFormat("%.3f", error / measured) : kNothing,
            speed(encode),
            speed(decode)};
  }
};

std::string InferenceText(Inference inference) {
  return inference == Inference::kCompressed ? "with the codecs" : "without codecs";
}

}  // namespace

std::string Shown(double value, Measure measure) {
  return measure == Measure::kAccuracy ? absl::StrFormat("%.2f %%", 100 * value)
                                       : absl::StrFormat("%.4f", value);
}

double Scaled(double value, Measure measure) {
  return measure == Measure::kAccuracy ? 100 * value : value;
}

ReportTable SummaryTable(const std::vector<Configuration>& all, Measure measure, size_t baseline) {
  const bool is_accuracy = measure == Measure::kAccuracy;
  ReportTable table;
  table.title = "Summary";
  table.note = absl::StrCat(
      is_accuracy ? "Test accuracy in percent" : "Validation loss in nats",
      " of the last evaluated epoch, mean ± standard deviation over the seeds that completed. On: "
      "with the codecs at inference, as trained; off: without them; recalibrated: without them, "
      "batch norm statistics "
      "re-estimated. Best: of the epoch that was best. Megabytes and bits count every byte of "
      "training's frames, and ratios are to the compute type.");
  absl::StrAppend(&table.note, " Difference: on, to ", all[baseline].name,
                  ", mean over the seeds that both have and its 95 % interval (Student's t).");
  table.columns = {"configuration", "seeds",   "on",       "difference",    "off",
                   "recalibrated",  "best on", "sent, MB", "times smaller", "seconds per epoch"};
  for (const Configuration& one : all) {
    const auto last = [&](Inference inference) {
      return SpreadText(
          Values(one, [&](const ReportedRun& run) { return Last(run, inference, measure); }),
          measure);
    };
    const auto best = Values(
        one, [&](const ReportedRun& run) { return Best(run, Inference::kCompressed, measure); });
    table.rows.push_back({one.name, Seeds(one), last(Inference::kCompressed),
                          DifferenceText(one, all[baseline], measure),
                          last(Inference::kUncompressed),
                          last(Inference::kUncompressedRecalibrated), SpreadText(best, measure),
                          Megabytes(one), Smaller(one), ShortMean(Values(one, SecondsPerEpoch))});
  }
  DropEmptyColumns(&table);
  return table;
}

ReportTable TargetTable(const std::vector<Configuration>& all, const ReportTarget& target) {
  ReportTable table;
  table.title = absl::StrCat("Time to ", Shown(target.value, target.measure));
  table.note = absl::StrCat(
      "The first epoch that reaches ", Shown(target.value, target.measure), " ",
      InferenceText(target.inference),
      " and whose next evaluated one does, too. Seconds are of training on the machine where it "
      "ran, without evaluation and start-up; medians of the seeds that reached it, n of how many. "
      "Break-even: the link rate below which the codecs save time when encoding, transfer and "
      "decoding follow one another.");
  table.columns = {"configuration", "reached", "epoch", "seconds", "sent, MB", "break-even"};
  for (const Configuration& one : all) {
    std::vector<double> epochs, seconds, bytes;
    for (const ReportedRun* run : one.judged) {
      const auto reached = FirstReached(*run, target);
      if (!reached) continue;
      epochs.push_back(reached->epoch);
      seconds.push_back(reached->seconds);
      bytes.push_back(reached->wire_bytes);
    }
    const auto median = [](const std::vector<double>& values, double unit) {
      return values.empty() ? kNothing : Digits(Median(values) / unit, 4);
    };
    table.rows.push_back({one.name, absl::StrCat(epochs.size(), " of ", one.judged.size()),
                          median(epochs, 1), median(seconds, 1), median(bytes, 1e6),
                          Rate(BreakEven(one))});
  }
  return table;
}

ReportTable BoundaryTable(const std::vector<Configuration>& all) {
  ReportTable table;
  table.title = "Cuts";
  table.words = 4;
  table.note =
      "Bits: wire bits per element, every byte counted. Error: ‖x − x̂‖ / ‖x‖ of what the receiver "
      "uses, mean of the measured messages. Speeds: raw gigabytes per second of wall time. Means "
      "over seeds.";
  table.columns = {"configuration", "cut",   "direction", "codec",
                   "bits",          "error", "encode",    "decode"};
  for (const Configuration& one : all) {
    const Summary& first = one.judged.front()->summary;
    for (int i = 0; i < first.boundaries_size(); ++i) {
      DirectionSum activations, gradients;
      for (const ReportedRun* run : one.judged) {
        if (i >= run->summary.boundaries_size()) continue;
        activations.Add(run->summary.boundaries(i).activations());
        gradients.Add(run->summary.boundaries(i).gradients());
      }
      const std::string& cut = first.boundaries(i).name();
      table.rows.push_back(activations.Row(one.name, cut, "activations"));
      table.rows.push_back(gradients.Row(one.name, cut, "gradients"));
    }
  }
  return table;
}

ReportTable RunTable(const std::vector<Configuration>& all) {
  ReportTable table;
  table.title = "Runs";
  table.words = 10;
  table.note = "Where each run stands, what it was trained by, and how it ended.";
  table.columns = {"configuration", "seed",   "folder",    "status", "epochs",
                   "stages",        "device", "processor", "build",  "started"};
  for (const Configuration& one : all) {
    for (const ReportedRun* run : one.runs) {
      const Summary& summary = run->summary;
      const Provenance& from = summary.provenance();
      const auto shown = [](const std::string& text) {
        return text.empty() ? kNothing : PrintableLine(text);
      };
      table.rows.push_back({one.name, absl::StrCat(summary.seed()), run->dir,
                            summary.has_error() ? absl::StrCat(summary.status(), ": ",
                                                               PrintableLine(summary.error()))
                                                : summary.status(),
                            absl::StrCat(summary.epochs_size()),
                            summary.stages() > 0 ? absl::StrCat(summary.stages()) : kNothing,
                            shown(summary.device()), shown(from.cpu_model()),
                            shown(from.build_id()), shown(from.started())});
    }
  }
  return table;
}

}  // namespace thinwire
