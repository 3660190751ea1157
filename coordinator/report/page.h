// A report as an HTML page, as Markdown and as CSV.
#pragma once

#include <string>
#include <vector>

#include "coordinator/report/report.h"

namespace thinwire {

// Returns a complete HTML document that loads nothing: style and charts are inside. It is light or
// dark like the reader's system, and it can be printed.
std::string Page(const Report& report);

// Returns the tables in Markdown, with their notes.
std::string ReportMarkdown(const Report& report);

// Returns a CSV (RFC 4180 with line feeds) with a line per run and epoch, for programs. Values are
// fractions, nats, bytes and seconds; a field without a value is empty.
std::string ReportCsv(const std::vector<ReportedRun>& runs);

}  // namespace thinwire
