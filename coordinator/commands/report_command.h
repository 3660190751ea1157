// `thinwire report`: results of runs as one page.
#pragma once

#include <string>
#include <vector>

#include "coordinator/report/report.h"

namespace thinwire {

// Arguments of the command.
struct ReportCommandFlags {
  std::vector<std::string> dirs;
  ReportFlags report;
  std::string format;  // html, md, csv; empty: by the ending of `out`, or html
  std::string out;     // empty: report.html in the folder if one is given; stdout for other formats
};

// Returns the process's exit code; errors go to stderr.
int ReportCommand(const ReportCommandFlags& flags);

}  // namespace thinwire
