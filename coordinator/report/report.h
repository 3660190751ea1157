// Contents of a report about runs, tables and charts, independent of the format.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/report/chart.h"
#include "coordinator/report/configurations.h"

namespace thinwire {

// Options of a report.
struct ReportFlags {
  std::string title;  // empty: "Runs" and the first path's name
  // Name of a configuration; empty: the first one without codecs, or else the first.
  std::string baseline;
  // Fraction, or nats; not set: the baseline's last result less a margin.
  std::optional<double> target;
  // Or "uncompressed": the evaluation that must reach the target.
  std::string inference = "compressed";
};

// Rows of text.
struct ReportTable {
  std::string title;
  std::string note;  // one or more sentences that say what the columns mean
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  size_t words = 1;  // number of leading columns that are text, not compared
};

struct ReportedChart {
  Chart chart;
  std::string note;
};

// Timeline of one step of a traced run.
struct ReportedTimeline {
  std::string name;  // name of its configuration
  std::string svg;
};

struct Report {
  std::string title;
  std::vector<ReportTable> tables;
  std::vector<ReportedChart> charts;
  std::vector<ReportedTimeline> timelines;
  std::vector<std::string> names;  // names of the configurations, in the order of colours
  // Pairs of a configuration's name and its first run's experiment.
  std::vector<std::pair<std::string, std::string>> experiments;
};

// Makes a report of `runs`, of which there is at least one. InvalidArgument: no configuration has
// the baseline's name (names those there are), no table can hold the runs together, or a file is no
// trace.
absl::StatusOr<Report> ReportOf(const std::vector<ReportedRun>& runs, const ReportFlags& flags);

}  // namespace thinwire
