// docs/results_format.md names every field of the record of a run, in its order, and no other.
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/coordinator.pb.h"

namespace thinwire {
namespace {

using Fields = std::vector<std::string>;

// The fields that the page's tables name, by the message in their heading ("### StepRecord").
std::map<std::string, Fields> Documented() {
  std::map<std::string, Fields> messages;
  std::ifstream page("docs/results_format.md");
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

TEST(ResultsFormatTest, ThePageHasEveryFieldOfEveryMessage) {
  const google::protobuf::FileDescriptor* file = Summary::descriptor()->file();
  std::map<std::string, Fields> messages;
  for (int i = 0; i < file->message_type_count(); ++i) {
    const google::protobuf::Descriptor* message = file->message_type(i);
    for (int f = 0; f < message->field_count(); ++f) {
      messages[message->name()].push_back(message->field(f)->name());
    }
  }
  EXPECT_THAT(Documented(), ::testing::ContainerEq(messages));
}

}  // namespace
}  // namespace thinwire
