#include "coordinator/results/database.h"

#include <sqlite3.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "coordinator/files/folders.h"
#include "coordinator/files/json.h"
#include "proto/coordinator.pb.h"

namespace thinwire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

std::string TypeOf(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return "REAL";
    case FieldDescriptor::CPPTYPE_STRING:
      return "TEXT";
    default:
      return "INTEGER";
  }
}

void Add(const Descriptor* message, const std::vector<std::string>& above,
         std::vector<Column>* columns) {
  for (int i = 0; i < message->field_count(); ++i) {
    const FieldDescriptor* field = message->field(i);
    if (field->is_repeated()) continue;  // maps too
    std::vector<std::string> path = above;
    path.push_back(field->name());
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      Add(field->message_type(), path, columns);
    } else {
      columns->push_back({absl::StrJoin(path, "_"), TypeOf(*field), path});
    }
  }
}

using Json = nlohmann::ordered_json;

constexpr int kPatienceMilliseconds = 10'000;  // how long to wait for a reader that holds the file
constexpr const char* kDirections[] = {"activations", "gradients"};

struct Table {
  std::string name;
  std::vector<Column> keys;    // the primary key; `run` first
  std::vector<Column> fields;  // the rest

  std::vector<Column> All() const {
    std::vector<Column> all = keys;
    all.insert(all.end(), fields.begin(), fields.end());
    return all;
  }
};

std::vector<Column> With(std::vector<Column> before, std::vector<Column> fields) {
  before.insert(before.end(), fields.begin(), fields.end());
  return before;
}

// Returns the columns that are not keys.
std::vector<Column> Without(std::vector<Column> columns, const std::set<std::string>& keys) {
  columns.erase(std::remove_if(columns.begin(), columns.end(),
                               [&](const Column& column) { return keys.count(column.name) > 0; }),
                columns.end());
  return columns;
}

const std::vector<Table>& Tables() {
  static const auto* tables = [] {
    const Column run = {"run", "TEXT", {}}, epoch = {"epoch", "INTEGER", {"epoch"}},
                 step = {"step", "INTEGER", {"step"}}, boundary = {"boundary", "TEXT", {}},
                 direction = {"direction", "TEXT", {}};
    return new std::vector<Table>{
        {"runs",
         {run},
         With({{"row", "TEXT", {}}, {"position", "INTEGER", {}}, {"experiment", "TEXT", {}}},
              ColumnsOf(Summary::descriptor()))},
        {"epochs", {run, epoch}, Without(ColumnsOf(EpochRecord::descriptor()), {"epoch"})},
        {"steps",
         {run, step},
         With({{"time", "TEXT", {"time"}}},
              Without(ColumnsOf(StepRecord::descriptor()), {"step"}))},
        {"evaluations", {run, step}, Without(ColumnsOf(EvaluationRecord::descriptor()), {"step"})},
        {"boundaries", {run, boundary, direction}, ColumnsOf(DirectionRecord::descriptor())},
        {"epoch_boundaries",
         {run, epoch, boundary, direction},
         ColumnsOf(EpochDirection::descriptor())},
        {"step_boundaries",
         {run, step, {"boundary", "TEXT", {"boundary"}}, {"direction", "TEXT", {"direction"}}},
         Without(ColumnsOf(TrafficRecord::descriptor()), {"step", "boundary", "direction"})}};
  }();
  return *tables;
}

const Table& TableOf(const std::string& name) {
  for (const Table& table : Tables()) {
    if (table.name == name) return table;
  }
  return Tables()[0];
}

std::string NamesOf(const std::vector<Column>& columns) {
  return absl::StrJoin(columns, ", ", [](std::string* out, const Column& column) {
    absl::StrAppend(out, "\"", column.name, "\"");
  });
}

std::string Creation(const Table& table) {
  const std::string columns =
      absl::StrJoin(table.All(), ", ", [](std::string* out, const Column& column) {
        absl::StrAppend(out, "\"", column.name, "\" ", column.type);
      });
  return absl::StrCat("CREATE TABLE ", table.name, " (", columns, ", PRIMARY KEY (",
                      NamesOf(table.keys), "))");
}

// An SQL statement with its parameters in order.
class Statement {
 public:
  Statement(sqlite3* database, const std::string& sql) : database_(database) {
    code_ = sqlite3_prepare_v2(database, sql.c_str(), -1, &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void Bind(const std::vector<Json>& values) {
    sqlite3_reset(statement_);
    int at = 0;
    for (const Json& value : values) BindOne(++at, value);
  }

  // Returns true if there is another row.
  absl::StatusOr<bool> Step() {
    if (code_ == SQLITE_OK) code_ = sqlite3_step(statement_);
    const int code = std::exchange(code_, SQLITE_OK);
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    return absl::InternalError(
        absl::StrCat(sqlite3_db_filename(database_, "main"), ": ", sqlite3_errmsg(database_)));
  }

  int columns() const { return sqlite3_column_count(statement_); }
  bool IsNull(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  // Returns real numbers as the shortest text that reads back the same.
  std::string Text(int column) const {
    if (sqlite3_column_type(statement_, column) == SQLITE_FLOAT) {
      return Json(sqlite3_column_double(statement_, column)).dump();
    }
    const auto* text = sqlite3_column_text(statement_, column);
    return text == nullptr ? "" : reinterpret_cast<const char*>(text);
  }

 private:
  void BindOne(int at, const Json& value) {
    if (value.is_string()) {
      const auto& text = value.get_ref<const std::string&>();
      sqlite3_bind_text(statement_, at, text.data(), static_cast<int>(text.size()),
                        SQLITE_TRANSIENT);
    } else if (value.is_boolean()) {
      sqlite3_bind_int(statement_, at, value.get<bool>() ? 1 : 0);
    } else if (value.is_number_float()) {
      sqlite3_bind_double(statement_, at, value.get<double>());
    } else if (value.is_number()) {
      sqlite3_bind_int64(statement_, at, value.get<int64_t>());
    } else {
      sqlite3_bind_null(statement_, at);
    }
  }

  sqlite3* database_;
  sqlite3_stmt* statement_ = nullptr;
  int code_ = SQLITE_OK;
};

absl::Status Execute(sqlite3* database, const std::string& sql,
                     const std::vector<Json>& values = {}) {
  Statement statement(database, sql);
  statement.Bind(values);
  return statement.Step().status();
}

// Makes all changes of `change`, or none.
absl::Status InTransaction(sqlite3* database, const std::function<absl::Status()>& change) {
  RETURN_IF_ERROR(Execute(database, "BEGIN IMMEDIATE"));
  absl::Status status = change();
  if (status.ok()) status = Execute(database, "COMMIT");
  if (!status.ok()) Execute(database, "ROLLBACK").IgnoreError();
  return status;
}

// Inserts rows into one table.
class Inserter {
 public:
  Inserter(sqlite3* database, const Table& table)
      : table_(table), statement_(database, Sql(table)) {}

  // Adds a row. The first columns have the values of `given`, the others those in `json`.
  absl::Status Add(std::vector<Json> given, const Json& json) {
    const std::vector<Column> all = table_.All();
    for (size_t i = given.size(); i < all.size(); ++i) given.push_back(ValueOf(all[i], json));
    statement_.Bind(given);
    return statement_.Step().status();
  }

 private:
  static std::string Sql(const Table& table) {
    const std::vector<std::string> marks(table.All().size(), "?");
    return absl::StrCat("INSERT INTO ", table.name, " VALUES (", absl::StrJoin(marks, ", "), ")");
  }

  const Table& table_;
  Statement statement_;
};

}  // namespace

std::vector<Column> ColumnsOf(const Descriptor* message) {
  std::vector<Column> columns;
  Add(message, {}, &columns);
  return columns;
}

nlohmann::ordered_json ValueOf(const Column& column, const nlohmann::ordered_json& json) {
  const nlohmann::ordered_json* at = &json;
  for (const std::string& step : column.path) {
    if (!at->is_object() || !at->contains(step)) return nullptr;
    at = &(*at)[step];
  }
  return *at;
}

absl::StatusOr<std::unique_ptr<ResultsDatabase>> ResultsDatabase::Open(const std::string& path) {
  RETURN_IF_ERROR(CheckRegular(path));
  sqlite3* database = nullptr;
  const int code = sqlite3_open(path.c_str(), &database);
  std::unique_ptr<ResultsDatabase> opened(new ResultsDatabase(database));
  if (code != SQLITE_OK) {
    return absl::InternalError(absl::StrCat(path, ": ", sqlite3_errstr(code)));
  }
  sqlite3_busy_timeout(database, kPatienceMilliseconds);
  RETURN_IF_ERROR(InTransaction(database, [&] { return opened->MakeTables(); }));
  return opened;
}

ResultsDatabase::~ResultsDatabase() { sqlite3_close(database_); }

absl::Status ResultsDatabase::MakeTables() {
  bool is_ours = true;
  for (const Table& table : Tables()) {
    Statement made(database_, "SELECT 1 FROM sqlite_master WHERE name = ? AND sql = ?");
    made.Bind({table.name, Creation(table)});
    ASSIGN_OR_RETURN(const bool is_there, made.Step());
    is_ours = is_ours && is_there;
  }
  if (is_ours) return absl::OkStatus();
  for (const Table& table : Tables()) {
    RETURN_IF_ERROR(Execute(database_, absl::StrCat("DROP TABLE IF EXISTS ", table.name)));
    RETURN_IF_ERROR(Execute(database_, Creation(table)));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ResultsDatabase::Has(const RunPosition& position,
                                          const std::string& finished) {
  Statement found(database_,
                  "SELECT 1 FROM runs WHERE run = ? AND \"row\" = ? AND position = ? AND "
                  "provenance_finished = ?");
  found.Bind({position.run, position.row, position.number, finished});
  return found.Step();
}

absl::Status ResultsDatabase::Replace(const RunPosition& position, const RunFiles& files) {
  return InTransaction(database_, [&] {
    for (const Table& table : Tables()) {
      RETURN_IF_ERROR(Execute(database_, absl::StrCat("DELETE FROM ", table.name, " WHERE run = ?"),
                              {position.run}));
    }
    return Insert(position, files);
  });
}

absl::Status ResultsDatabase::Insert(const RunPosition& position, const RunFiles& files) {
  const Json& run = position.run;
  const Json summary = ToJson(files.summary);
  RETURN_IF_ERROR(Inserter(database_, TableOf("runs"))
                      .Add({run, position.row, position.number, files.experiment}, summary));
  Inserter steps(database_, TableOf("steps"));
  for (const Json& step : files.metrics.steps) RETURN_IF_ERROR(steps.Add({run}, step));
  Inserter step_boundaries(database_, TableOf("step_boundaries"));
  for (const Json& record : files.traffic) RETURN_IF_ERROR(step_boundaries.Add({run}, record));
  Inserter boundaries(database_, TableOf("boundaries"));
  for (const Json& boundary : summary["boundaries"]) {
    for (const char* direction : kDirections) {
      RETURN_IF_ERROR(boundaries.Add({run, boundary["name"], direction}, boundary[direction]));
    }
  }
  Inserter evaluations(database_, TableOf("evaluations"));
  for (const EvaluationRecord& record : files.metrics.evaluations) {
    RETURN_IF_ERROR(evaluations.Add({run}, ToJson(record)));
  }
  Inserter epochs(database_, TableOf("epochs"));
  Inserter epoch_boundaries(database_, TableOf("epoch_boundaries"));
  for (const EpochRecord& record : files.metrics.epochs) {
    const Json epoch = ToJson(record);
    RETURN_IF_ERROR(epochs.Add({run}, epoch));
    for (const Json& boundary : epoch["boundaries"]) {
      for (const char* direction : kDirections) {
        RETURN_IF_ERROR(epoch_boundaries.Add({run, epoch["epoch"], boundary["name"], direction},
                                             boundary[direction]));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ResultsDatabase::ExportCsv(const std::string& dir) {
  RETURN_IF_ERROR(MakeFolder(dir).status());
  for (const Table& table : Tables()) {
    RETURN_IF_ERROR(
        ReplaceFile(absl::StrCat(dir, "/", table.name, ".csv"), [&](const FileSink& sink) {
          const std::string names =
              absl::StrReplaceAll(NamesOf(table.All()), {{"\"", ""}, {", ", ","}});
          RETURN_IF_ERROR(sink(names + "\r\n"));
          Statement rows(database_, absl::StrCat("SELECT * FROM ", table.name, " ORDER BY ",
                                                 NamesOf(table.keys)));
          while (true) {
            ASSIGN_OR_RETURN(const bool is_row, rows.Step());
            if (!is_row) return absl::OkStatus();
            std::vector<std::string> fields;
            for (int i = 0; i < rows.columns(); ++i) fields.push_back(CsvField(rows.Text(i)));
            RETURN_IF_ERROR(sink(absl::StrJoin(fields, ",") + "\r\n"));
          }
        }));
  }
  return absl::OkStatus();
}

}  // namespace thinwire
