// Charts as SVG, for a page whose style sheet defines their colours.
#pragma once

#include <string>
#include <vector>

namespace thinwire {

inline constexpr int kColours = 8;  // number of series colours; further series repeat them, dashed

struct ChartPoint {
  double x = 0, y = 0;
  std::string label;  // text beside the mark, or empty
};

struct ChartSeries {
  static constexpr int kNeutral = -1;

  std::string name;
  int colour = 0;             // index of the colour, or kNeutral
  bool is_secondary = false;  // True for a finer, dashed line.
  // In the order of x; a single point is drawn as a mark, more as a line.
  std::vector<ChartPoint> points;
};

struct Chart {
  std::string title, x_label, y_label;
  bool is_log_x = false;  // True: logarithmic x axis; then all x are positive.
  std::vector<ChartSeries> series;
};

// Returns an <svg> with axes of round numbers; "" if no series has a point. Lines and marks have
// the class c0 … c7 by their colour, or `neutral`, and a <title>.
std::string Svg(const Chart& chart);

// Returns about `wanted` round numbers, ascending, from at or below `least` to at or above `most`.
std::vector<double> RoundTicks(double least, double most, int wanted);
// Returns powers of ten around [least, most], both above 0; where these are few, their multiples by
// 2 and 5 too.
std::vector<double> LogTicks(double least, double most);

}  // namespace thinwire
