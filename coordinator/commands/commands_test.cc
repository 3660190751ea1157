#include "coordinator/commands/commands.h"

#include <string>
#include <vector>

#include "coordinator/session/exit_code.h"
#include "gmock/gmock.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class CommandsTest : public ::testing::Test {
 protected:
  CommandsTest() {
    for (const auto add : kCommands) commands_.push_back(add(&app_));
  }

  CLI::App app_;
  std::vector<Command> commands_;
};

TEST_F(CommandsTest, EachIsASubcommandInTheOrderOfTheListAndShowsExamples) {
  const std::vector<CLI::App*> lines = app_.get_subcommands({});
  ASSERT_EQ(lines.size(), commands_.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(commands_[i].line, lines[i]);
    EXPECT_THAT(lines[i]->get_footer(),
                AllOf(HasSubstr("Examples:\n"), HasSubstr("\n  thinwire " + lines[i]->get_name())));
  }
}

TEST_F(CommandsTest, TheOneThatIsNamedIsParsedAndHasItsFlags) {
  app_.parse(std::vector<std::string>{"/nonexistent/run", "trace"});  // in reverse, as CLI11 wants
  const Command* named = nullptr;
  for (const Command& command : commands_) {
    if (!command.line->parsed()) continue;
    EXPECT_EQ(named, nullptr);
    named = &command;
  }
  ASSERT_NE(named, nullptr);
  EXPECT_EQ(named->line->get_name(), "trace");
  Interruption interruption;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(named->work(&interruption), kExitUsage);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              StartsWith("thinwire: /nonexistent/run/trace.json: "));
}

}  // namespace
}  // namespace thinwire
