#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/results/database.h"
#include "proto/coordinator.pb.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;

TEST(ColumnsTest, FieldsOfFieldsStandUnderBothNamesAndListsAreLeftOut) {
  std::vector<std::string> names;
  for (const Column& column : ColumnsOf(EpochRecord::descriptor())) {
    names.push_back(column.name + " " + column.type);
  }
  EXPECT_THAT(
      names,
      ElementsAre(
          "epoch INTEGER", "lr REAL", "train_loss REAL", "train_accuracy REAL",
          "train_perplexity REAL", "train_classes_f1 REAL", "train_classes_matthews REAL",
          "train_scores_pearson REAL", "train_scores_spearman REAL", "test_compressed_loss REAL",
          "test_compressed_accuracy REAL", "test_compressed_perplexity REAL",
          "test_compressed_classes_f1 REAL", "test_compressed_classes_matthews REAL",
          "test_compressed_scores_pearson REAL", "test_compressed_scores_spearman REAL",
          "test_uncompressed_loss REAL", "test_uncompressed_accuracy REAL",
          "test_uncompressed_perplexity REAL", "test_uncompressed_classes_f1 REAL",
          "test_uncompressed_classes_matthews REAL", "test_uncompressed_scores_pearson REAL",
          "test_uncompressed_scores_spearman REAL", "test_uncompressed_reason TEXT",
          "test_uncompressed_recalibrated_loss REAL",
          "test_uncompressed_recalibrated_accuracy REAL",
          "test_uncompressed_recalibrated_perplexity REAL",
          "test_uncompressed_recalibrated_classes_f1 REAL",
          "test_uncompressed_recalibrated_classes_matthews REAL",
          "test_uncompressed_recalibrated_scores_pearson REAL",
          "test_uncompressed_recalibrated_scores_spearman REAL", "test_held_out INTEGER",
          "seconds REAL", "samples_per_second REAL", "evaluation_seconds REAL",
          "replicas_contributions_raw_bytes INTEGER", "replicas_contributions_wire_bytes INTEGER",
          "replicas_contributions_messages INTEGER", "replicas_contributions_relative_error REAL",
          "replicas_contributions_level REAL", "replicas_average_raw_bytes INTEGER",
          "replicas_average_wire_bytes INTEGER", "replicas_average_messages INTEGER",
          "replicas_average_relative_error REAL", "replicas_average_level REAL"));
}

TEST(ColumnsTest, WhatIsMissingOnTheWayIsNull) {
  const Column column = {"a_b", "REAL", {"a", "b"}};
  EXPECT_EQ(ValueOf(column, {{"a", {{"b", 2}}}}), 2);
  EXPECT_TRUE(ValueOf(column, {{"a", nullptr}}).is_null());
  EXPECT_TRUE(ValueOf(column, {{"b", 1}}).is_null());
}

}  // namespace
}  // namespace thinwire
