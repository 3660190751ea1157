// Checks that the user's pages name exactly the fields of a run's record, of a checkpoint's
// manifest, of a plan, of a tune and of an evaluation, in their order.
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/checkpoint.pb.h"
#include "proto/coordinator.pb.h"
#include "proto/evaluation.pb.h"
#include "proto/plan.pb.h"
#include "proto/tune.pb.h"

namespace thinwire {
namespace {

using Fields = std::vector<std::string>;

// Returns the fields that the page's tables name, by the message in their heading ("###
// StepRecord").
std::map<std::string, Fields> Documented(const char* path) {
  std::map<std::string, Fields> messages;
  std::ifstream page(path);
  std::string message;
  for (std::string line; std::getline(page, line);) {
    if (absl::StartsWith(line, "#")) {
      message = absl::StartsWith(line, "### ") ? line.substr(4) : "";
      if (!message.empty()) messages[message];
    } else if (!message.empty() && absl::StartsWith(line, "| `")) {
      messages[message].push_back(std::vector<std::string>(absl::StrSplit(line, '`'))[1]);
    }
  }
  return messages;
}

// Returns those of all messages in the .proto file of `one`.
std::map<std::string, Fields> Defined(const google::protobuf::Descriptor* one) {
  std::map<std::string, Fields> messages;
  for (int i = 0; i < one->file()->message_type_count(); ++i) {
    const google::protobuf::Descriptor* message = one->file()->message_type(i);
    for (int f = 0; f < message->field_count(); ++f) {
      messages[message->name()].push_back(message->field(f)->name());
    }
  }
  return messages;
}

TEST(PagesTest, EveryMessageStandsThereWithEveryField) {
  EXPECT_THAT(Documented("docs/results_format.md"),
              ::testing::ContainerEq(Defined(Summary::descriptor())));
  EXPECT_THAT(Documented("docs/checkpoints.md"),
              ::testing::ContainerEq(Defined(CheckpointManifest::descriptor())));
  EXPECT_THAT(Documented("docs/plan.md"),
              ::testing::ContainerEq(Defined(PlanReport::descriptor())));
  EXPECT_THAT(Documented("docs/tune.md"),
              ::testing::ContainerEq(Defined(TuneReport::descriptor())));
  EXPECT_THAT(Documented("docs/evaluate.md"),
              ::testing::ContainerEq(Defined(EvaluateReport::descriptor())));
}

}  // namespace
}  // namespace thinwire
