// results.sqlite: the runs of a sweep as tables, for whoever asks questions of them. All of it
// follows from the runs' folders; docs/results_format.md says what stands where.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/results/run_files.h"

struct sqlite3;

namespace thinwire {

// What a sweep says of a run.
struct RunPosition {
  std::string run;     // "topk10-seed1": its folder
  std::string row;     // "topk10"
  int64_t number = 0;  // in the sweep's order, from 0
};

// One thread at a time; other processes may read. Errors name the file and what SQLite said.
class ResultsDatabase {
 public:
  // Makes the file where there is none. Tables that are not as this program makes them, as another
  // version's are not, are made anew, empty.
  static absl::StatusOr<std::unique_ptr<ResultsDatabase>> Open(const std::string& path);
  ~ResultsDatabase();

  // Whether that run stands there, at that position, as a run that ended at `finished`
  // (provenance.finished of its summary).
  absl::StatusOr<bool> Has(const RunPosition& position, const std::string& finished);

  // Puts a run in the place of what stands there of it, in one transaction: a reader, and whoever
  // comes after a crash, finds the old or the new one.
  absl::Status Replace(const RunPosition& position, const RunFiles& files);

  // Writes each table to DIR/TABLE.csv as RFC 4180 has it, with a line of names and empty fields
  // for NULL, rows in the order of their keys.
  absl::Status ExportCsv(const std::string& dir);

 private:
  ResultsDatabase(std::string path, sqlite3* database)
      : path_(std::move(path)), database_(database) {}
  absl::Status MakeTables();
  absl::Status Insert(const RunPosition& position, const RunFiles& files);

  const std::string path_;
  sqlite3* database_;  // owned
};

}  // namespace thinwire
