// Layouts as text.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/plan/layouts.h"
#include "coordinator/plan/table_text.h"

namespace thinwire {
namespace {

// With prices a layout has what an epoch costs in place of its samples a second.
std::string RowOf(const LayoutEstimate& row, bool has_prices) {
  const std::string every = row.has_every() ? absl::StrCat(row.every()) : "-";
  const std::string worth = has_prices ? absl::StrFormat("%9.4g", row.epoch_cost())
                                       : absl::StrFormat("%9.0f", row.samples_per_second());
  return Wrapped(
      absl::StrFormat("%c%-6s %8.1f %s %7.2f %7.1f %3d%c %5s %-8s ", row.own() ? '>' : ' ',
                      absl::StrCat(row.replicas(), " x ", row.stages()), 1e3 * row.step_seconds(),
                      worth, row.machine_wire_bytes() / 1e6, row.memory_bytes() / 1e6,
                      row.microbatches(), row.learns_otherwise() ? '*' : ' ', every, row.limit()),
      row.codec());
}

std::string Notes(const std::vector<LayoutEstimate>& estimates, const LayoutOptions& options) {
  const auto any = [&](auto is) { return std::any_of(estimates.begin(), estimates.end(), is); };
  std::string note = absl::StrCat(
      options.prices ? "Cheapest first; epoch: what one costs. " : "Fastest first. ",
      "Layout: replicas x stages. Wire: what the machine that sends most sends in a step, likely. "
      "Memory: of the machine that needs most. Part: microbatches of a replica, the best of those "
      "tried. Every: steps from one exchange of the replicas to the next. Limit: what takes "
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
  std::string text = absl::StrFormat(" %-6s %8s %9s %7s %7s %4s %5s %-8s %s\n", "layout", "step ms",
                                     has_prices ? "epoch" : "samples/s", "wire MB", "mem. MB",
                                     "part", "every", "limit", "codec");
  for (const LayoutEstimate& row : estimates) text += RowOf(row, has_prices);
  text += Notes(estimates, options) + FormatAssumptions(plan);
  for (const std::string& line : left_out) text += Wrapped("", line);
  return text;
}

}  // namespace thinwire
