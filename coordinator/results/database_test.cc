#include "coordinator/results/database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "coordinator/files/summary.h"

namespace thinwire {
namespace {

RunFiles Files(double loss) {
  RunFiles files;
  files.experiment = "name: a\nseed: 1\n";
  const absl::Status summary =
      FromJson(R"json({"name": "a", "status": "completed", "error": null, "seed": 1,
    "stages": 2, "device": "cpu", "parameters": 10, "epochs": [],
    "boundaries": [{"name": "layer1",
      "activations": {"codec": "topk", "parameters": "topk(ratio=0.1, values=fp32)",
                      "wire_bytes": 7, "causal": true, "relative_error": null},
      "gradients": {"codec": "none", "wire_bytes": 8}}],
    "provenance": {"commit": "abc", "finished": "2026-01-01T00:00:00Z"}})json",
               "summary", &files.summary);
  EXPECT_TRUE(summary.ok()) << summary;
  files.metrics.steps = {
      {{"type", "step"}, {"time", "t"}, {"epoch", 1}, {"step", 1}, {"loss", loss}},
      {{"type", "step"}, {"time", "t"}, {"epoch", 1}, {"step", 2}, {"loss", nullptr}}};
  files.traffic = {{{"step", 1},
                    {"boundary", "layer1"},
                    {"direction", "gradients"},
                    {"wire_bytes", 5},
                    {"relative_error", 0.5},
                    {"level", nullptr}}};
  const absl::Status epoch =
      FromJson(R"({"type": "epoch", "epoch": 1, "train": {"loss": 2.5}, "test": null,
    "boundaries": [{"name": "layer1", "activations": {"wire_bytes": 3}, "gradients": {"wire_bytes": 4}}]})",
               "epoch", &files.metrics.epochs.emplace_back());
  EXPECT_TRUE(epoch.ok()) << epoch;
  EvaluationRecord& evaluation = files.metrics.evaluations.emplace_back();
  evaluation.set_epoch(1);
  evaluation.set_step(2);
  evaluation.mutable_test()->mutable_compressed()->set_loss(1.5);
  return files;
}

class DatabaseTest : public ::testing::Test {
 protected:
  DatabaseTest() { std::filesystem::remove(path_); }

  std::unique_ptr<ResultsDatabase> Opened() {
    auto database = ResultsDatabase::Open(path_);
    EXPECT_TRUE(database.ok()) << database.status();
    return *std::move(database);
  }
  // Returns the columns of the rows, with "|" between them.
  std::string Ask(const std::string& sql) {
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    std::string rows;
    const auto take = [](void* rows, int n, char** values, char**) {
      for (int i = 0; i < n; ++i) {
        *static_cast<std::string*>(rows) += std::string(values[i] ? values[i] : "NULL") + "|";
      }
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), take, &rows, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_close(database);
    return rows;
  }

  const std::string path_ = ::testing::TempDir() + "/results.sqlite";
  const RunPosition position_ = {"a-seed1", "a", 4};
};

TEST_F(DatabaseTest, ARunIsRowsInSevenTables) {
  ASSERT_TRUE(Opened()->Replace(position_, Files(0.5)).ok());
  EXPECT_EQ(Ask("SELECT run, row, position, status, error, seed, provenance_commit FROM runs"),
            "a-seed1|a|4|completed|NULL|1|abc|");
  EXPECT_EQ(Ask("SELECT run, step, epoch, loss FROM steps"), "a-seed1|1|1|0.5|a-seed1|2|1|NULL|");
  EXPECT_EQ(Ask("SELECT epoch, train_loss, test_compressed_loss FROM epochs"), "1|2.5|NULL|");
  EXPECT_EQ(Ask("SELECT run, step, epoch, test_compressed_loss, test_uncompressed_loss FROM "
                "evaluations"),
            "a-seed1|2|1|1.5|NULL|");
  EXPECT_EQ(Ask("SELECT boundary, direction, codec, wire_bytes, causal FROM boundaries"),
            "layer1|activations|topk|7|1|layer1|gradients|none|8|NULL|");
  EXPECT_EQ(Ask("SELECT epoch, boundary, direction, wire_bytes FROM epoch_boundaries"),
            "1|layer1|activations|3|1|layer1|gradients|4|");
  EXPECT_EQ(
      Ask("SELECT run, step, boundary, direction, raw_bytes, wire_bytes, relative_error, level "
          "FROM step_boundaries"),
      "a-seed1|1|layer1|gradients|NULL|5|0.5|NULL|");
}

TEST_F(DatabaseTest, ARunIsReplacedAndNothingElseIs) {
  const auto database = Opened();
  ASSERT_TRUE(database->Replace(position_, Files(0.5)).ok());
  ASSERT_TRUE(database->Replace({"b-seed1", "b", 5}, Files(0.75)).ok());
  ASSERT_TRUE(database->Replace(position_, Files(0.25)).ok());
  EXPECT_EQ(Ask("SELECT run, loss FROM steps WHERE step = 1 ORDER BY run"),
            "a-seed1|0.25|b-seed1|0.75|");
  EXPECT_EQ(Ask("SELECT count(*) FROM runs"), "2|");
}

TEST_F(DatabaseTest, WhatCannotBeInsertedChangesNothing) {
  const auto database = Opened();
  ASSERT_TRUE(database->Replace(position_, Files(0.5)).ok());
  RunFiles twice = Files(0.25);
  twice.metrics.steps.push_back(twice.metrics.steps[0]);
  const absl::Status refused = database->Replace(position_, twice);
  EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr("results.sqlite: UNIQUE"));
  EXPECT_EQ(Ask("SELECT loss FROM steps WHERE step = 1"), "0.5|");
}

TEST_F(DatabaseTest, KnowsWhatItHas) {
  const auto database = Opened();
  ASSERT_TRUE(database->Replace(position_, Files(0.5)).ok());
  EXPECT_TRUE(*database->Has(position_, "2026-01-01T00:00:00Z"));
  EXPECT_FALSE(*database->Has(position_, "2026-01-01T00:00:01Z"));
  EXPECT_FALSE(*database->Has({"a-seed1", "a", 3}, "2026-01-01T00:00:00Z"));
}

TEST_F(DatabaseTest, TablesOfAnotherVersionAreMadeAnew) {
  ASSERT_TRUE(Opened()->Replace(position_, Files(0.5)).ok());
  ASSERT_TRUE(Opened() != nullptr);
  EXPECT_EQ(Ask("SELECT count(*) FROM runs"), "1|");
  Ask("ALTER TABLE steps DROP COLUMN lr");
  ASSERT_TRUE(Opened() != nullptr);
  EXPECT_EQ(Ask("SELECT count(*), count(lr) FROM steps"), "0|0|");
}

TEST_F(DatabaseTest, AFileOfSomethingElseIsLeftAlone) {
  std::ofstream(path_) << "this is no database, and it is longer than a header of one, I hope: "
                       << std::string(200, 'x');
  EXPECT_THAT(std::string(ResultsDatabase::Open(path_).status().message()),
              ::testing::HasSubstr("results.sqlite: file is not a database"));
}

TEST_F(DatabaseTest, CsvQuotesWhatHoldsCommas) {
  const auto database = Opened();
  ASSERT_TRUE(database->Replace(position_, Files(0.1)).ok());
  const std::string dir = ::testing::TempDir() + "/csv";
  ASSERT_TRUE(database->ExportCsv(dir).ok());
  std::stringstream text;
  text << std::ifstream(dir + "/steps.csv").rdbuf();
  EXPECT_EQ(text.str(),
            "run,step,time,epoch,loss,accuracy,lr,samples,seconds\r\n"
            "a-seed1,1,t,1,0.1,,,,\r\na-seed1,2,t,1,,,,,\r\n");
  text.str("");
  text << std::ifstream(dir + "/boundaries.csv").rdbuf();
  EXPECT_THAT(text.str(), ::testing::HasSubstr("layer1,activations,topk,\"topk(ratio=0.1, "
                                               "values=fp32)\","));
}

}  // namespace
}  // namespace thinwire
