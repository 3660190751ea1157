// The tables of a report.
#pragma once

#include <vector>

#include "coordinator/report/report.h"

namespace thinwire {

// What each configuration reached and sent: mean and, of several seeds, standard deviation; and how
// far it is from `baseline`, an index, in the seeds that both have.
ReportTable SummaryTable(const std::vector<Configuration>& all, Measure measure, size_t baseline);
// How soon each reached the target, and the link rate below which its codecs save time.
ReportTable TargetTable(const std::vector<Configuration>& all, const ReportTarget& target);
// Each direction of each cut: bits, error, coding time.
ReportTable BoundaryTable(const std::vector<Configuration>& all);
// Each run: seed, status, machine and version.
ReportTable RunTable(const std::vector<Configuration>& all);

// In the unit of tables and charts: percent, or nats.
double Scaled(double value, Measure measure);
// A value of that measure as tables have it: "79.41 %", "1.914".
std::string Shown(double value, Measure measure);

}  // namespace thinwire
