// The tables of a report.
#pragma once

#include <vector>

#include "coordinator/report/report.h"

namespace thinwire {

// Returns the results and the traffic of each configuration: the mean and, for several seeds, the
// standard deviation. A column has the difference to the configuration with index `baseline`, over
// the seeds that both have.
ReportTable SummaryTable(const std::vector<Configuration>& all, Measure measure, size_t baseline);
// Returns how soon each reached the target, and the link rate below which its codecs save time.
ReportTable TargetTable(const std::vector<Configuration>& all, const ReportTarget& target);
// Returns bits, error and coding time of each direction of each cut.
ReportTable BoundaryTable(const std::vector<Configuration>& all);
// Returns seed, status, machine and version of each run.
ReportTable RunTable(const std::vector<Configuration>& all);

// Converts to the unit of tables and charts: per cent, or nats.
double Scaled(double value, Measure measure);
// Formats a value as tables show it: "79.41 %", "1.914".
std::string Shown(double value, Measure measure);

}  // namespace thinwire
