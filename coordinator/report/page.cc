#include "coordinator/report/page.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/build_info.h"
#include "base/text.h"

namespace thinwire {
namespace {

constexpr char kStyle[] = R"css(
:root { color-scheme: light dark; --back: #fff; --text: #1f2328; --faint: #59636e; --grid: #d8dee4;
  --c0: #0969da; --c1: #cf222e; --c2: #1a7f37; --c3: #9a6700; --c4: #8250df; --c5: #bf3989;
  --c6: #0a7ea4; --c7: #6e5494; }
@media (prefers-color-scheme: dark) { :root { --back: #0d1117; --text: #e6edf3; --faint: #9198a1;
  --grid: #30363d; --c0: #58a6ff; --c1: #ff7b72; --c2: #3fb950; --c3: #d29922; --c4: #bc8cff;
  --c5: #f778ba; --c6: #39c5cf; --c7: #b392f0; } }
body { background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif;
  max-width: 1120px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .3rem; }
p { color: var(--faint); margin: .2rem 0 .8rem; max-width: 52rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .87rem; font-variant-numeric: tabular-nums; }
th, td { padding: .28rem .6rem; border-bottom: 1px solid var(--grid); text-align: right; }
th { font-weight: 600; vertical-align: bottom; } td { white-space: nowrap; }
th:first-child, td:first-child { padding-left: 0; } .word { text-align: left; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(460px, 1fr)); gap: 1rem 2rem; }
figure { margin: 0; break-inside: avoid; } figcaption { color: var(--faint); font-size: .82rem; }
svg { width: 100%; height: auto; } .charts text { fill: var(--text); font: 12px system-ui, sans-serif; }
.charts .title { font-weight: 600; font-size: 14px; } .charts .tick { fill: var(--faint); }
.grid { stroke: var(--grid); stroke-width: 1; fill: none; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; } .dashed { stroke-dasharray: 5 4; stroke-width: 1.4; }
.mark { stroke: var(--back); stroke-width: 1; }
path.neutral { stroke: var(--faint); stroke-width: 1; }
.timeline { margin: .8rem 0; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; margin: .6rem 0; font-size: .87rem; }
.legend span::before { content: ""; display: inline-block; width: 1.1em; height: .25em; margin-right: .45em;
  vertical-align: middle; background: var(--of); }
details { margin: .4rem 0; } summary { cursor: pointer; }
pre { overflow-x: auto; font-size: .8rem; border: 1px solid var(--grid); padding: .7rem; }
@media print { :root { color-scheme: light; --back: #fff; --text: #000; --faint: #444; --grid: #ccc; }
  body { margin: 0; max-width: none; font-size: 11px; } h2, figure, tr { break-inside: avoid; }
  .charts { grid-template-columns: 1fr 1fr; } }
)css";

// Returns the styles c0 … c7: the colours of lines, marks and the legend.
std::string ColourStyles() {
  std::string css;
  for (int i = 0; i < kColours; ++i) {
    absl::StrAppendFormat(&css,
                          "path.c%d { stroke: var(--c%d); } circle.c%d { fill: var(--c%d); } "
                          ".legend .c%d { --of: var(--c%d); }\n",
                          i, i, i, i, i, i);
  }
  return css;
}

std::string RowHtml(const std::vector<std::string>& row, const char* cell, size_t words) {
  std::string html = "<tr>";
  for (size_t i = 0; i < row.size(); ++i) {
    absl::StrAppend(&html, "<", cell, i < words ? " class=\"word\">" : ">", MarkupText(row[i]),
                    "</", cell, ">");
  }
  return html + "</tr>\n";
}

std::string TableHtml(const ReportTable& table) {
  std::string html = absl::StrCat("<h2>", MarkupText(table.title), "</h2>\n<p>",
                                  MarkupText(table.note), "</p>\n<div class=\"wide\"><table>\n",
                                  RowHtml(table.columns, "th", table.words));
  for (const std::vector<std::string>& row : table.rows) html += RowHtml(row, "td", table.words);
  return html + "</table></div>\n";
}

std::string Legend(const Report& report) {
  std::string html = "<div class=\"legend\">";
  for (size_t i = 0; i < report.names.size(); ++i) {
    absl::StrAppend(&html, "<span class=\"c", i % kColours, "\">", MarkupText(report.names[i]),
                    "</span>");
  }
  return html + "</div>\n";
}

std::string Charts(const Report& report) {
  std::string figures;
  for (const ReportedChart& one : report.charts) {
    const std::string svg = Svg(one.chart);
    if (svg.empty()) continue;  // nothing was measured yet
    absl::StrAppend(&figures, "<figure>\n", svg, "<figcaption>", MarkupText(one.note),
                    "</figcaption></figure>\n");
  }
  if (figures.empty()) return "";
  return absl::StrCat("<h2>Curves</h2>\n", Legend(report), "<div class=\"charts\">\n", figures,
                      "</div>\n");
}

std::string Timelines(const Report& report) {
  if (report.timelines.empty()) return "";
  std::string html =
      "<h2>Timelines</h2>\n<p>The last traced step of each configuration's first traced run; "
      "docs/schedules.md "
      "says how to read it.</p>\n";
  for (const ReportedTimeline& one : report.timelines) {
    absl::StrAppend(&html, "<figure class=\"timeline\">\n", one.svg, "<figcaption>",
                    MarkupText(one.name), "</figcaption></figure>\n");
  }
  return html;
}

std::string Experiments(const Report& report) {
  std::string html = "<h2>Experiments</h2>\n<p>Each as it was resolved, of the first seed.</p>\n";
  for (const auto& [name, yaml] : report.experiments) {
    absl::StrAppend(&html, "<details><summary>", MarkupText(name), "</summary><pre>",
                    MarkupText(Printable(yaml)), "</pre></details>\n");
  }
  return html;
}

// Replaces what a cell of a Markdown table must not hold: bars and line ends.
std::string Cell(const std::string& text) {
  return absl::StrReplaceAll(text, {{"|", "\\|"}, {"\n", " "}});
}

std::string Optional(const std::optional<double>& value) {
  return value ? absl::StrFormat("%.9g", *value) : "";
}

}  // namespace

std::string Page(const Report& report) {
  std::string html = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      MarkupText(report.title), "</title>\n<style>", kStyle, ColourStyles(),
      "</style></head>\n<body>\n<h1>", MarkupText(report.title), "</h1>\n<p>Written by thinwire ",
      MarkupText(BuildId()), ".</p>\n");
  for (size_t i = 0; i < report.tables.size(); ++i) {
    html += TableHtml(report.tables[i]);
    if (i == 0) html += Charts(report);
  }
  return absl::StrCat(html, Timelines(report), Experiments(report), "</body></html>\n");
}

std::string ReportMarkdown(const Report& report) {
  std::string text = absl::StrCat("# ", report.title, "\n");
  for (const ReportTable& table : report.tables) {
    absl::StrAppend(&text, "\n## ", table.title, "\n\n", table.note, "\n\n| ",
                    absl::StrJoin(table.columns, " | "), " |\n|",
                    absl::StrReplaceAll(std::string(table.columns.size(), '-'), {{"-", "---|"}}),
                    "\n");
    for (const std::vector<std::string>& row : table.rows) {
      std::vector<std::string> cells;
      for (const std::string& cell : row) cells.push_back(Cell(cell));
      absl::StrAppend(&text, "| ", absl::StrJoin(cells, " | "), " |\n");
    }
  }
  return text;
}

std::string ReportCsv(const std::vector<ReportedRun>& runs) {
  std::string csv =
      "folder,name,seed,status,epoch,train_loss,train_accuracy,compressed_loss,compressed_accuracy,"
      "uncompressed_loss,uncompressed_accuracy,raw_bytes,wire_bytes,seconds\n";
  for (const ReportedRun& run : runs) {
    size_t trained = 0;
    for (const EpochRecord& epoch : run.summary.epochs()) {
      const Traffic before = Sent(run, trained), now = Sent(run, ++trained);
      std::vector<std::string> fields = {CsvField(run.dir),
                                         CsvField(run.summary.name()),
                                         absl::StrCat(run.summary.seed()),
                                         run.summary.status(),
                                         absl::StrCat(epoch.epoch()),
                                         Optional(epoch.train().loss()),
                                         Optional(epoch.train().accuracy())};
      for (const Inference inference : {Inference::kCompressed, Inference::kUncompressed}) {
        fields.push_back(Optional(Evaluated(epoch, inference, Measure::kLoss)));
        fields.push_back(Optional(Evaluated(epoch, inference, Measure::kAccuracy)));
      }
      fields.push_back(absl::StrFormat("%.0f", now.raw_bytes - before.raw_bytes));
      fields.push_back(absl::StrFormat("%.0f", now.wire_bytes - before.wire_bytes));
      fields.push_back(Optional(epoch.seconds()));
      absl::StrAppend(&csv, absl::StrJoin(fields, ","), "\n");
    }
  }
  return csv;
}

}  // namespace thinwire
