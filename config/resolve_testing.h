// Experiments for tests of resolving.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/experiment.h"

namespace thinwire {

// The smallest valid experiment.
inline constexpr char kLeast[] = R"(
model: {name: resnet8}
data: {name: digits}
optimizer: {lr: 0.1}
epochs: 3
)";

inline Experiment With(const std::vector<std::string>& overrides,
                       const std::string& text = kLeast) {
  const auto e = ParseExperiment(text, "least.yaml", overrides);
  EXPECT_TRUE(e.ok()) << e.status();
  return e.ok() ? *e : Experiment();
}

inline std::string ErrorWith(const std::vector<std::string>& overrides,
                             const std::string& text = kLeast) {
  const auto e = ParseExperiment(text, "f.yaml", overrides);
  EXPECT_EQ(e.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(e.status().message());
}

}  // namespace thinwire
