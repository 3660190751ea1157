#include "coordinator/evaluate/table.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

EvaluateReport Report() {
  EvaluateReport report;
  report.set_source("runs/a");
  report.set_weights("runs/a/model");
  report.set_data("shakespeare");
  report.set_precision("fp32");
  report.set_parameters(1000);
  report.set_samples(8);
  report.add_cuts("h.0");
  report.add_cuts("h.1");
  return report;
}

TEST(EvaluateTableTest, HasALineForEachRow) {
  EvaluateReport report = Report();
  EvaluateRow* row = report.add_rows();
  row->set_codec("none");
  row->mutable_test()->set_loss(1.5);
  row->mutable_test()->set_accuracy(0.5);
  row->mutable_test()->set_perplexity(4.4817);
  row->set_bits_per_element(32.01);
  row->set_loss_above_none(0);
  *report.add_rows() = *row;
  row = report.mutable_rows(1);
  row->set_codec("uniform(bits=4)");
  row->set_loss_above_none(0.25);
  EXPECT_EQ(EvaluateTable(report),
            "runs/a: weights of runs/a/model, 1000 parameters, fp32; 8 samples of\n"
            "shakespeare; cuts h.0, h.1\n"
            "\n"
            "bits/elem      loss  above none  perplexity  accuracy  activations\n"
            "   32.010    1.5000     +0.0000       4.482   50.00 %  none\n"
            "   32.010    1.5000     +0.2500       4.482   50.00 %  uniform(bits=4)\n");
}

TEST(EvaluateTableTest, WhatIsNotThereIsADash) {
  EvaluateReport report;
  report.add_rows()->set_codec("as trained");
  report.mutable_rows(0)->mutable_test()->mutable_scores()->set_spearman(0.5);
  const std::string table = EvaluateTable(report);
  EXPECT_NE(table.find("random initial weights"), std::string::npos);
  EXPECT_NE(table.find("no cut\n"), std::string::npos);
  EXPECT_NE(table.find("        -    0.0000           -           -  rho 0.500  as trained\n"),
            std::string::npos)
      << table;
}

}  // namespace
}  // namespace thinwire
