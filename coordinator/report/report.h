// What a report says of runs: tables and charts, whatever they are written in.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/report/chart.h"
#include "coordinator/report/configurations.h"
#include "coordinator/report/target.h"

namespace thinwire {

struct ReportFlags {
  std::string title;             // empty: "Runs" and the first path's name
  std::string baseline;          // a configuration; empty: the first without codecs, or the first
  std::optional<double> target;  // fraction, or nats; none: the baseline's last less a margin
  std::string inference = "compressed";  // or "uncompressed": what reaches the target
};

// Rows of text.
struct ReportTable {
  std::string title;
  std::string note;  // what the columns mean, in a sentence or some
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  size_t words = 1;  // of the first columns, which are read and not compared
};

struct ReportedChart {
  Chart chart;
  std::string note;
};

// One step of a traced run.
struct ReportedTimeline {
  std::string name;  // of its configuration
  std::string svg;
};

struct Report {
  std::string title;
  std::vector<ReportTable> tables;
  std::vector<ReportedChart> charts;
  std::vector<ReportedTimeline> timelines;
  std::vector<std::string> names;  // of the configurations, by colour
  // Of each configuration its name and its first run's experiment.
  std::vector<std::pair<std::string, std::string>> experiments;
};

// Runs are at least one. InvalidArgument: a baseline that no configuration has, with those there
// are; runs that no table can hold together; a file that is no trace.
absl::StatusOr<Report> ReportOf(const std::vector<ReportedRun>& runs, const ReportFlags& flags);

}  // namespace thinwire
