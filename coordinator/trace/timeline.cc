#include "coordinator/trace/timeline.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text.h"
#include "schedule/schedule.h"

namespace thinwire {
namespace {

// Sizes in pixels.
constexpr double kWidth = 960, kLeft = 64, kRight = 16, kTop = 64, kBottom = 36;
constexpr double kRow = 62, kBar = 26, kPart = 6, kCodec = 6, kLeastText = 9;
constexpr char kText[] = "#1f2328", kQuiet[] = "#59636e", kGrid[] = "#d0d7de";

struct Look {
  const char*
      // Activity, or the whole name of a slice that looks different from the others of its
      // activity.
      activity;
  const char* label;
  const char* fill;
};
constexpr Look kLooks[] = {
    {"forward", "forward", "#0969da"},         {"backward", "backward", "#bf8700"},
    {"backward weight", "weights", "#d4a72c"}, {"optimizer", "optimizer", "#8250df"},
    {"receive_wait", "waiting", "#eaeef2"},    {"data", "samples", "#afb8c1"},
    {"encode", "encode", "#cf222e"},           {"decode", "decode", "#1a7f37"}};

const Look* LookOf(const TraceSlice& slice) {
  for (const std::string& name : {slice.name(), ActivityOf(slice)}) {
    const auto* look = std::find_if(std::begin(kLooks), std::end(kLooks),
                                    [&](const Look& one) { return name == one.activity; });
    if (look != std::end(kLooks)) return look;
  }
  return nullptr;
}

bool IsCodec(const TraceSlice& slice) {
  return slice.name() == "encode" || slice.name() == "decode";
}

// Time shown: from the begin of the first stage, or the first action of another that is not
// waiting, to the step's end.
struct Window {
  int64_t begin = std::numeric_limits<int64_t>::max(), end = 0;

  double X(int64_t time) const {
    const double share = static_cast<double>(time - begin) / static_cast<double>(end - begin);
    return kLeft + (kWidth - kLeft - kRight) * std::clamp(share, 0.0, 1.0);
  }
};

std::string Text(double x, double y, const char* anchor, const char* fill, int size,
                 const std::string& text) {
  return absl::StrFormat(
      "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" text-anchor=\"%s\" fill=\"%s\">%s</text>\n", x,
      y, size, anchor, fill, text);
}

std::string Rectangle(double x, double y, double width, double height, const char* fill,
                      const std::string& more = "") {
  return absl::StrFormat(
      "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\"%s/>\n", x, y, width,
      height, fill, more);
}

class Timeline {
 public:
  Timeline(const RunTrace& trace, uint64_t step) : trace_(trace), step_(step) {
    for (size_t stage = 0; stage < trace.stages.size(); ++stage) {
      for (const TraceSlice& slice : trace.stages[stage].slices) {
        if (slice.step() != step || IsOfDevice(slice)) continue;
        window_.end = std::max(window_.end, slice.end());
        const std::string& name = slice.name();
        const bool waits =
            name == "step" || name == "receive_wait" || (name == "data" && stage > 0);
        if (!waits) window_.begin = std::min(window_.begin, slice.begin());
      }
    }
  }

  bool is_empty() const { return window_.begin >= window_.end; }

  std::string Svg() const {
    const double height = kTop + kRow * static_cast<double>(trace_.stages.size()) + kBottom;
    const std::string title = Title();
    std::string svg = absl::StrFormat(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
        "font-family=\"system-ui, sans-serif\"><title>%s</title>\n",
        kWidth, height, title);
    svg += Rectangle(0, 0, kWidth, height, "#ffffff");
    svg += Text(12, 20, "start", kText, 14, title);
    svg += Legend() + Axis(height);
    for (size_t stage = 0; stage < trace_.stages.size(); ++stage) svg += Row(stage);
    for (const TracedMessage& message : MessagesOf(trace_)) {
      if (message.step == step_ && message.crossed()) svg += Wire(message);
    }
    return svg + "</svg>\n";
  }

 private:
  static double Y(size_t stage) { return kTop + kRow * static_cast<double>(stage); }

  std::string Title() const {
    return MarkupText(absl::StrCat(trace_.schedule, ", ", trace_.stages.size(), " stages, ",
                                   UnitsText(trace_), ": step ", step_, " of run ", trace_.run));
  }

  static std::string Legend() {
    std::string svg;
    double x = kLeft;
    for (const Look& look : kLooks) {
      svg +=
          Rectangle(x, 33, 12, 12, look.fill) + Text(x + 17, 43, "start", kQuiet, 12, look.label);
      x += 96;
    }
    absl::StrAppendFormat(&svg, "<path d=\"M%.1f 45l16 -12\" stroke=\"%s\"/>\n", x, kQuiet);
    return svg + Text(x + 22, 43, "start", kQuiet, 12, "on the wire");
  }

  // Draws about five to ten ticks at round milliseconds.
  std::string Axis(double height) const {
    const double span = 1e-6 * static_cast<double>(window_.end - window_.begin);
    double tick = std::pow(10, std::floor(std::log10(span)));
    if (span / tick < 2) tick /= 5;
    if (span / tick < 5) tick /= 2;
    std::string svg;
    for (int i = 0; i * tick <= span; ++i) {
      const double x = window_.X(window_.begin + std::llround(1e6 * i * tick));
      absl::StrAppendFormat(&svg, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"%s\"/>\n", x, kTop - 8,
                            height - kBottom + 4, kGrid);
      svg += Text(x, height - kBottom + 18, "middle", kQuiet, 11,
                  absl::StrFormat("%g%s", i * tick, i == 0 ? " ms" : ""));
    }
    return svg;
  }

  std::string Row(size_t stage) const {
    std::vector<const TraceSlice*> slices;
    for (const TraceSlice& slice : trace_.stages[stage].slices) {
      const bool is_shown =
          slice.step() == step_ && LookOf(slice) != nullptr && slice.end() > window_.begin;
      if (is_shown) slices.push_back(&slice);
    }
    std::sort(slices.begin(), slices.end(), [](const TraceSlice* a, const TraceSlice* b) {
      return a->begin() != b->begin() ? a->begin() < b->begin() : a->end() > b->end();
    });
    std::string svg =
        Text(12, Y(stage) + kBar - 8, "start", kText, 12, absl::StrCat("stage ", stage));
    for (const TraceSlice* slice : slices) svg += Bar(stage, *slice);
    return svg;
  }

  std::string Bar(size_t stage, const TraceSlice& slice) const {
    const double x = window_.X(slice.begin()), width = window_.X(slice.end()) - x;
    const Look& look = *LookOf(slice);
    if (IsCodec(slice)) {
      const double y = Y(stage) + kBar + 2 + (slice.name() == "decode" ? kCodec + 1 : 0);
      return Rectangle(x, y, std::max(width, 0.5), kCodec, look.fill);
    }
    // A part of an activity ("forward loss") has its colour, but is lower than the activity's own
    // slice.
    const double down = slice.name() == look.activity ? 0 : kPart;
    std::string svg = Rectangle(x, Y(stage) + down, width, kBar - down, look.fill, Shade(slice));
    const bool computes = slice.name() == "forward" || ActivityOf(slice) == "backward";
    if (computes && slice.has_microbatch() && width >= kLeastText) {
      svg += Text(x + width / 2, Y(stage) + kBar - 8, "middle", "#ffffff", 12,
                  absl::StrCat(slice.microbatch()));
    }
    return svg;
  }

  // With several segments a stage, later segments are paler.
  std::string Shade(const TraceSlice& slice) const {
    ScheduleKind schedule{};
    const bool takes_turns =
        FromName(trace_.schedule, &schedule).ok() && Interleaves(schedule) && slice.has_segment();
    const size_t chunk = takes_turns ? slice.segment() / trace_.stages.size() : 0;
    if (chunk == 0) return "";
    return absl::StrFormat(" fill-opacity=\"%.2f\"", std::max(0.4, 1 - 0.3 * chunk));
  }

  // Draws the line down from below the sender's bar, or up to it.
  std::string Wire(const TracedMessage& message) const {
    const double y_from = Y(message.from) + (message.to > message.from ? kBar : 0);
    const double y_to = Y(message.to) + (message.to > message.from ? 0 : kBar);
    return absl::StrFormat(
        "<path d=\"M%.2f %.1fL%.2f %.1f\" stroke=\"%s\" stroke-width=\"0.8\"/>\n",
        window_.X(message.send->begin()), y_from, window_.X(message.decode->ready()), y_to, kQuiet);
  }

  const RunTrace& trace_;
  const uint64_t step_;
  Window window_;
};

}  // namespace

absl::StatusOr<std::string> TimelineSvg(const RunTrace& trace, uint64_t step) {
  const Timeline timeline(trace, step);
  if (!timeline.is_empty()) return timeline.Svg();
  return absl::NotFoundError(absl::StrCat("step ", step, ": the trace has nothing of it"));
}

}  // namespace thinwire
