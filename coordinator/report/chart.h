// Charts as SVG, to stand inside a page whose style sheet names their colours.
#pragma once

#include <string>
#include <vector>

namespace thinwire {

inline constexpr int kColours = 8;  // of series; more of them begin anew, dashed

struct ChartPoint {
  double x = 0, y = 0;
  std::string label;  // beside the mark, if it has one
};

struct ChartSeries {
  static constexpr int kNeutral = -1;

  std::string name;
  int colour = 0;                  // index of what it is of, or kNeutral
  bool is_secondary = false;       // a finer, dashed line
  std::vector<ChartPoint> points;  // by x; one alone is a mark, more are a line
};

struct Chart {
  std::string title, x_label, y_label;
  bool is_log_x = false;  // then all x are positive
  std::vector<ChartSeries> series;
};

// An <svg> with axes of round numbers; "" where no series has a point. Lines and marks have
// class c0 … c7 by their colour, or `neutral`, and a <title>.
std::string Svg(const Chart& chart);

// Round numbers from at or below `least` to at or above `most`, about `wanted` of them, ascending.
std::vector<double> RoundTicks(double least, double most, int wanted);
// Powers of ten, with twice and five times them where these are few, around [least, most] > 0.
std::vector<double> LogTicks(double least, double most);

}  // namespace thinwire
