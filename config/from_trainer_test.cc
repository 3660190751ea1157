// Checks docs/from_trainer.md: its tables name fields that are there, and its example resolves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "config/experiment.h"
#include "config/fields.h"

namespace thinwire {
namespace {

std::string TrainerPage() { return *ReadFile("docs/from_trainer.md"); }

// Returns what stands between backquotes.
std::vector<std::string> QuotedIn(const std::string& cell) {
  const std::vector<std::string> parts = absl::StrSplit(cell, '`');
  std::vector<std::string> quoted;
  for (size_t i = 1; i < parts.size(); i += 2) quoted.push_back(parts[i]);
  return quoted;
}

TEST(FromTrainerTest, NamesFieldsThatAreThere) {
  int fields = 0;
  const std::vector<std::string> lines = absl::StrSplit(TrainerPage(), '\n');
  for (const std::string& line : lines) {
    const std::vector<std::string> cells = absl::StrSplit(line, '|');
    if (cells.size() < 4) continue;
    for (const std::string& path : QuotedIn(cells[2])) {
      EXPECT_NE(FieldAt(path), nullptr) << path;
      ++fields;
    }
  }
  EXPECT_GT(fields, 25);
}

TEST(FromTrainerTest, ItsExampleResolves) {
  const std::vector<std::string> pieces = absl::StrSplit(TrainerPage(), "```");
  ASSERT_TRUE(absl::StartsWith(pieces.at(1), "yaml\n"));
  const auto experiment =
      ParseExperiment(pieces[1].substr(5), "from_trainer.md",
                      {"init=", "model={name: llama, layers: 6, width: 16, heads: 2, hidden: 32}",
                       "data.tokens=bytes",
                       "data.corpus={vocabulary: 256, train_samples: 4200, test_samples: 10}"});
  ASSERT_TRUE(experiment.ok()) << experiment.status();
  EXPECT_EQ(experiment->steps(), 1000u);
  EXPECT_EQ(experiment->pipeline().stages(), 4u);
}

}  // namespace
}  // namespace thinwire
