// A report as one page, as text and as numbers.
#pragma once

#include <string>
#include <vector>

#include "coordinator/report/report.h"

namespace thinwire {

// A complete HTML document that loads nothing: style and charts stand in it. Light or dark as the
// reader's system is; made to be printed, too.
std::string Page(const Report& report);

// The tables in Markdown, with their notes.
std::string ReportMarkdown(const Report& report);

// A line per run and epoch, for programs; fractions, nats, bytes and seconds, empty where there is
// no value. RFC 4180 with line feeds.
std::string ReportCsv(const std::vector<ReportedRun>& runs);

}  // namespace thinwire
