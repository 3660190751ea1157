// Layouts as text.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/plan/layouts.h"
#include "coordinator/plan/table_text.h"

namespace thinwire {
namespace {

std::string RowOf(const LayoutEstimate& row, bool has_prices) {
  const std::string every = row.has_every() ? absl::StrCat(row.every()) : "-";
  const std::string cost = has_prices ? absl::StrFormat("%9.3f ", row.epoch_cost()) : "";
  return Wrapped(
      absl::StrFormat("%c%3d x%3d %s%8.1f %9.0f %8.2f %7.1f %4d%c %5s %-8s ", row.own() ? '>' : ' ',
                      row.replicas(), row.stages(), cost, 1e3 * row.step_seconds(),
                      row.samples_per_second(), row.machine_wire_bytes() / 1e6,
                      row.memory_bytes() / 1e6, row.microbatches(),
                      row.learns_otherwise() ? '*' : ' ', every, row.limit()),
      row.codec());
}

std::string Notes(const std::vector<LayoutEstimate>& estimates, const LayoutOptions& options) {
  const auto any = [&](auto is) { return std::any_of(estimates.begin(), estimates.end(), is); };
  std::string note = absl::StrCat(
      options.prices ? "Cheapest first; epoch: what one costs. " : "Fastest first. ",
      "Layout: replicas x stages. Wire: what the machine that sends most sends in a step, likely. "
      "Memory: of the machine that needs most. Parts: microbatches of a replica, the fastest of "
      "those tried. Every: steps from one exchange of the replicas to the next. Limit: what takes "
      "most of a step.");
  if (any([](const LayoutEstimate& row) { return row.own(); })) {
    note += " > is the experiment as it stands.";
  }
  note =
      Wrapped("", note) +
      Wrapped("",
              "The table speaks of speed, not of accuracy: codecs and rare exchanges change what "
              "the model learns.");
  if (any([](const LayoutEstimate& row) { return !row.fits(); })) {
    note += Wrapped("", absl::StrFormat("Limit memory: does not fit into the %.1f MB of a machine "
                                        "(--memory_gb).",
                                        options.memory_bytes / 1e6));
  }
  if (any([](const LayoutEstimate& row) { return row.learns_otherwise(); })) {
    note += Wrapped("",
                    "* Batch norm normalises each microbatch by itself: a batch has another number "
                    "of them than in the experiment, so the model learns something else.");
  }
  return note;
}

}  // namespace

std::string FormatLayouts(const std::vector<LayoutEstimate>& estimates,
                          const LayoutOptions& options, const std::vector<std::string>& left_out,
                          const Plan& plan) {
  const bool has_prices = options.prices.has_value();
  std::string text = absl::StrFormat("%8s %s%8s %9s %8s %7s %5s %5s %-8s %s\n", "layout",
                                     has_prices ? "    epoch " : "", "step ms", "samples/s",
                                     "wire MB", "mem. MB", "parts", "every", "limit", "codec");
  for (const LayoutEstimate& row : estimates) text += RowOf(row, has_prices);
  text += Notes(estimates, options) + FormatAssumptions(plan);
  for (const std::string& line : left_out) text += Wrapped("", line);
  return text;
}

}  // namespace thinwire
