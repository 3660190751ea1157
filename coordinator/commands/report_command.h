// `thinwire report`: what runs reached, as one page.
#pragma once

#include <string>
#include <vector>

#include "coordinator/report/report.h"

namespace thinwire {

struct ReportCommandFlags {
  std::vector<std::string> dirs;
  ReportFlags report;
  std::string format;  // html, md, csv; empty: as `out` ends, or html
  std::string out;     // empty: report.html in the only folder given, stdout of other formats
};

// Returns the process's exit code; what is wrong goes to stderr.
int ReportCommand(const ReportCommandFlags& flags);

}  // namespace thinwire
