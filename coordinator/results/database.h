// results.sqlite: the runs of a sweep as tables, for queries. All of it can be derived from the
// runs' folders; docs/results_format.md describes the tables.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/results/run_files.h"
#include "google/protobuf/descriptor.h"
#include "nlohmann/json.hpp"

struct sqlite3;

namespace thinwire {

// One column.
struct Column {
  std::string name;               // "test_compressed_loss"
  std::string type;               // INTEGER, REAL or TEXT
  std::vector<std::string> path;  // {"test", "compressed", "loss"}
};

// Returns a column for every scalar field, in order. Fields of a nested message have its name
// before theirs. Lists and maps are left out.
std::vector<Column> ColumnsOf(const google::protobuf::Descriptor* message);

// Returns the value of a column in the message's JSON; null where any part of its path is null or
// absent.
nlohmann::ordered_json ValueOf(const Column& column, const nlohmann::ordered_json& json);

// Place of a run in a sweep.
struct RunPosition {
  std::string run;     // name of its folder: "topk10-seed1"
  std::string row;     // "topk10"
  int64_t number = 0;  // in the sweep's order, from 0
};

// The database. One thread at a time; other processes may read. Errors name the file and SQLite's
// message.
class ResultsDatabase {
 public:
  // Opens the file, and creates it if needed. Tables with another layout, as another version makes
  // them, are replaced by empty ones.
  static absl::StatusOr<std::unique_ptr<ResultsDatabase>> Open(const std::string& path);
  ~ResultsDatabase();

  // Returns whether the run is there, at that position, with `finished` as the end of the run
  // (provenance.finished of its summary).
  absl::StatusOr<bool> Has(const RunPosition& position, const std::string& finished);

  // Replaces what is stored of a run, in one transaction: readers, even after a crash, find the old
  // or the new content.
  absl::Status Replace(const RunPosition& position, const RunFiles& files);

  // Writes each table to DIR/TABLE.csv (RFC 4180) with a line of column names and empty fields for
  // NULL. Rows are in the order of their keys.
  absl::Status ExportCsv(const std::string& dir);

 private:
  explicit ResultsDatabase(sqlite3* database) : database_(database) {}
  absl::Status MakeTables();
  absl::Status Insert(const RunPosition& position, const RunFiles& files);

  sqlite3* database_;  // owned
};

}  // namespace thinwire
