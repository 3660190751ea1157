#include "coordinator/plan/captured_outliers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "config/experiment.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr char kLanguageModel[] = R"(
name: language
model: {name: gpt2, layers: 3, heads: 2, width: 16}
data: {name: shakespeare, context: 16}
pipeline: {cuts: [h.0, h.1]}
optimizer: {lr: 0.1}
epochs: 1
compression: {activations: {codec: uniform, bits: 4}}
)";

// Returns a capture at cut h.0 whose channel 3 is a hundred times as large as the others.
std::string CaptureWithAnOutlier() {
  std::vector<float> values(2 * 4 * 16, 1.0f);
  for (size_t i = 3; i < values.size(); i += 16) values[i] = 100;
  const std::string_view data(reinterpret_cast<const char*>(values.data()), 4 * values.size());
  const std::string_view gradient = data.substr(0, 64);
  Safetensors file;
  file.tensors = {{"h.0/activation/step1/microbatch0", "F32", {2, 4, 16}, data},
                  {"h.0/gradient/step1/microbatch0", "F32", {16}, gradient},
                  {"h.1/activation/step1/microbatch0", "F32", {1, 12}, data.substr(16, 48)}};
  std::string bytes;
  const absl::Status status = WriteSafetensors(file, 1 << 20, [&](std::string_view piece) {
    bytes += piece;
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return bytes;
}

std::vector<std::string> WarningsOfRun(const std::string& dir,
                                       const std::vector<std::string>& overrides = {}) {
  const auto experiment = ParseExperiment(kLanguageModel, "test", overrides);
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  const auto warnings = OutlierWarnings(dir, *experiment);
  EXPECT_TRUE(warnings.ok()) << warnings.status();
  return *warnings;
}

TEST(OutlierWarningsTest, NameTheCutAndTheSetting) {
  const std::string dir = ::testing::TempDir() + "/outliers_run";
  std::filesystem::create_directories(dir + "/captures");
  ASSERT_TRUE(ReplaceFile(dir + "/captures/step-1.safetensors", CaptureWithAnOutlier()).ok());
  EXPECT_THAT(WarningsOfRun(dir), ElementsAre(AllOf(StartsWith("warning: h.0, activations"),
                                                    HasSubstr("outliers: 1"))));
  EXPECT_THAT(WarningsOfRun(dir, {"compression.activations.outliers=1"}), IsEmpty());
  EXPECT_THAT(WarningsOfRun(dir, {"compression.activations={codec: none}"}), IsEmpty());
}

TEST(OutlierWarningsTest, OfARunAreForItsOwnExperiment) {
  const std::string dir = ::testing::TempDir() + "/outliers_of_run";
  std::filesystem::create_directories(dir + "/captures");
  EXPECT_EQ(OutlierWarningsOfRun(dir).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(ReplaceFile(dir + "/captures/step-1.safetensors", CaptureWithAnOutlier()).ok());
  const auto experiment = ParseExperiment(kLanguageModel, "test", {});
  ASSERT_TRUE(experiment.ok()) << experiment.status();
  ASSERT_TRUE(ReplaceFile(dir + "/experiment.yaml", ToYaml(*experiment)).ok());
  const auto warnings = OutlierWarningsOfRun(dir);
  ASSERT_TRUE(warnings.ok()) << warnings.status();
  EXPECT_THAT(*warnings, ElementsAre(HasSubstr("outliers: 1")));
}

TEST(OutliersOfStepTest, AreThoseOfAllStages) {
  const auto experiment = ParseExperiment(kLanguageModel, "test", {});
  ASSERT_TRUE(experiment.ok()) << experiment.status();
  const auto lines = OutliersOfStep(7, {"", CaptureWithAnOutlier()}, *experiment);
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_THAT(*lines, ElementsAre(AllOf(StartsWith("h.0, activations captured at step 7: "),
                                        HasSubstr("outliers: 1"))));
  EXPECT_FALSE(OutliersOfStep(7, {"no such file"}, *experiment).ok());
}

TEST(OutlierWarningsTest, ARunWithoutCapturesHasNone) {
  EXPECT_THAT(WarningsOfRun(::testing::TempDir() + "/no_such_run"), IsEmpty());
}

}  // namespace
}  // namespace thinwire
