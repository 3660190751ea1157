#include "coordinator/commands/unknown_argument.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace thinwire {
namespace {

// Returns what is said about a command line, given in reverse as CLI11 takes it.
std::string Said(const std::vector<std::string>& reversed) {
  CLI::App app;
  app.require_subcommand(1);
  std::string file, out;
  std::vector<std::string> sets;
  for (const char* name : {"run", "report"}) {
    CLI::App* command = app.add_subcommand(name);
    command->add_option("FILE", file);
    command->add_option("--out", out);
    if (name == std::string("run")) command->add_option("--set", sets)->allow_extra_args(false);
  }
  try {
    app.parse(std::vector<std::string>(reversed));
  } catch (const CLI::ParseError&) {
    return UnknownArgument(app);
  }
  return "";
}

TEST(UnknownArgumentTest, IsTheNearestCommand) {
  EXPECT_EQ(Said({"a.yaml", "runn"}), "runn: unknown command; did you mean run?");
}

TEST(UnknownArgumentTest, IsTheNearestFlag) {
  EXPECT_EQ(Said({"--oat=x", "a.yaml", "run"}), "--oat: unknown flag; did you mean --out?");
}

TEST(UnknownArgumentTest, IsAFieldWhereTheCommandTakesSome) {
  EXPECT_EQ(Said({"3", "--epochs", "a.yaml", "run"}),
            "--epochs: unknown flag; did you mean --set epochs=...?");
  EXPECT_EQ(Said({"a.yaml", "3", "--learning-rate", "run"}),
            "--learning-rate: unknown flag; did you mean --set optimizer.lr=...?");
  EXPECT_EQ(Said({"3", "--epochs", "a", "report"}), "--epochs: unknown flag");
}

TEST(UnknownArgumentTest, IsOneTooMany) {
  EXPECT_EQ(Said({"b.yaml", "a.yaml", "run"}), "b.yaml: one argument more than wanted");
}

TEST(UnknownArgumentTest, IsNoneWhereNothingIsUnknown) {
  EXPECT_EQ(Said({}), "");
  EXPECT_EQ(Said({"a.yaml", "run"}), "");
}

}  // namespace
}  // namespace thinwire
