// Layouts as text.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/plan/layouts.h"
#include "coordinator/plan/table_text.h"

namespace thinwire {
namespace {

// With prices a layout has what an epoch costs in place of its samples a second.
std::string RowOf(const LayoutEstimate& row, bool has_prices, bool has_parts) {
  const std::string every = row.has_every() ? absl::StrCat(row.every()) : "-";
  const std::string worth = has_prices ? absl::StrFormat("%9.4g", row.epoch_cost())
                                       : absl::StrFormat("%9.0f", row.samples_per_second());
  const std::string layout = has_parts
                                 ? absl::StrCat(row.replicas(), "x", row.stages(), "x", row.parts())
                                 : absl::StrCat(row.replicas(), " x ", row.stages());
  return Wrapped(
      absl::StrFormat("%c%-6s %8.1f %s %7.2f %7.1f %3d%c %5s %-8s ", row.own() ? '>' : ' ', layout,
                      1e3 * row.step_seconds(), worth, row.machine_wire_bytes() / 1e6,
                      row.memory_bytes() / 1e6, row.microbatches(),
                      row.learns_otherwise() ? '*' : ' ', every, row.limit()),
      row.codec());
}

bool HasParts(const std::vector<LayoutEstimate>& estimates) {
  return std::any_of(estimates.begin(), estimates.end(),
                     [](const LayoutEstimate& row) { return row.parts() > 1; });
}

// Tells what parts gain or cost.
std::string PartsNote(const std::vector<LayoutEstimate>& estimates) {
  const auto first = [&](bool has_parts) {
    return std::find_if(estimates.begin(), estimates.end(), [&](const LayoutEstimate& row) {
      return row.fits() && (row.parts() > 1) == has_parts;
    });
  };
  const auto with = first(true), without = first(false);
  if (with == estimates.end() || without == estimates.end()) return "";
  return Wrapped("", absl::StrFormat("A step of the first layout with several parts takes %.1f ms, "
                                     "of which sums take %.1f ms; one of the first layout without "
                                     "takes %.1f ms.",
                                     1e3 * with->step_seconds(), 1e3 * with->sums_seconds(),
                                     1e3 * without->step_seconds()));
}

std::string Notes(const std::vector<LayoutEstimate>& estimates, const LayoutOptions& options) {
  const auto any = [&](auto is) { return std::any_of(estimates.begin(), estimates.end(), is); };
  std::string note = absl::StrCat(
      options.prices ? "Cheapest first; epoch: what one costs. " : "Fastest first. ",
      "Layout: replicas x stages", HasParts(estimates) ? " x parts" : "",
      ". Wire: what the machine that sends most sends in a step, likely. "
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
  note += PartsNote(estimates);
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
  const bool has_parts = HasParts(estimates);
  for (const LayoutEstimate& row : estimates) text += RowOf(row, has_prices, has_parts);
  text += Notes(estimates, options) + FormatAssumptions(plan);
  for (const std::string& line : left_out) text += Wrapped("", line);
  return text;
}

}  // namespace thinwire
