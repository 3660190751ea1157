#include "coordinator/run/resumable.h"

#include <string>

#include "config/experiment.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

Experiment With(const std::vector<std::string>& overrides) {
  return *ParseExperiment(R"(
model: {name: resnet8, width: 4}
data: {name: digits, batch_size: 10}
optimizer: {name: sgd, lr: 0.1, momentum: 0.9}
epochs: 3
)",
                          "f.yaml", overrides);
}

TEST(ResumableTest, WhatTheStateIsNotAboutMayDiffer) {
  EXPECT_TRUE(CheckGoesOn(With({}), With({"epochs=9", "pipeline.stages=2", "optimizer.lr=0.01",
                                          "pipeline.cuts=[stem]", "optimizer.momentum=0.5",
                                          "compression.activations={codec: topk, ratio: 0.1}"}))
                  .ok());
}

TEST(ResumableTest, WhatItIsAboutIsNamedWithBothValues) {
  EXPECT_EQ(CheckGoesOn(With({}), With({"model.width=8"})).message(),
            "the run cannot go on as another: modified: model.width: 4 -> 8");
  for (const char* override :
       {"data.batch_size=20", "seed=2", "optimizer.momentum=0", "optimizer={name: adamw}",
        "precision=bf16", "data.limit=100", "data.held_out=100"}) {
    EXPECT_FALSE(CheckGoesOn(With({}), With({override})).ok()) << override;
  }
}

}  // namespace
}  // namespace thinwire
