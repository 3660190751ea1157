#include "config/yaml_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

YamlNode Parsed(const std::string& text) {
  const auto node = ParseYaml(text, "f.yaml");
  EXPECT_TRUE(node.ok()) << node.status();
  return node.ok() ? *node : YamlNode{};
}

std::string ErrorOf(const std::string& text) {
  const auto node = ParseYaml(text, "f.yaml");
  EXPECT_EQ(node.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(node.status().message());
}

TEST(YamlTreeTest, KeepsOrderLinesAndQuotes) {
  const YamlNode root = Parsed("b: 1\n\na: ['2', x]\n");
  EXPECT_THAT(root.keys, ElementsAre("b", "a"));
  EXPECT_THAT(root.key_lines, ElementsAre(1, 3));
  EXPECT_FALSE(root.items[0].quoted);
  EXPECT_TRUE(root.items[1].items[0].quoted);
  EXPECT_EQ(root.items[1].items[1].text, "x");
}

TEST(YamlTreeTest, AnEmptyTextIsNull) {
  EXPECT_EQ(Parsed("").kind, YamlNode::Kind::kNull);
  EXPECT_EQ(Parsed("# only a comment\n").kind, YamlNode::Kind::kNull);
}

TEST(YamlTreeTest, AnAliasIsACopyOfWhatItNames) {
  const YamlNode root = Parsed("a: &x {p: 1}\nb: *x\n");
  EXPECT_THAT(root.items[1].keys, ElementsAre("p"));
  EXPECT_EQ(root.items[1].line, 2);
}

TEST(YamlTreeTest, AKeyThatStandsTwiceNamesBothLines) {
  EXPECT_EQ(ErrorOf("a: 1\nb: 2\na: 3\n"), "f.yaml:3: \"a\" stands twice, first on line 1");
}

TEST(YamlTreeTest, BrokenSyntaxNamesTheLine) {
  EXPECT_THAT(ErrorOf("a: 1\nb: [1, 2\n"), StartsWith("f.yaml:3: not YAML: "));
  EXPECT_THAT(ErrorOf("a: *nothing\n"), StartsWith("f.yaml:1: not YAML: "));
}

TEST(YamlTreeTest, RefusesASecondDocument) {
  EXPECT_EQ(ErrorOf("a: 1\n---\nb: 2\n"), "f.yaml:3: a second document; a file holds one");
}

TEST(YamlTreeTest, RefusesKeysThatAreNotText) {
  EXPECT_EQ(ErrorOf("{[1]: 2}"),
            "f.yaml:1: a key that is a list or a map, or a bracket that is not closed");
  EXPECT_EQ(ErrorOf("a: &x b\n*x : c\n"), "f.yaml:2: a key that is not text");
  EXPECT_EQ(ErrorOf("~: 2"), "f.yaml:1: a key that is not text");
}

TEST(YamlTreeTest, RefusesTags) { EXPECT_THAT(ErrorOf("a: !!str 2"), HasSubstr("tags are not")); }

TEST(YamlTreeTest, RefusesAnAliasInsideOfWhatItNames) {
  EXPECT_EQ(ErrorOf("a: &x [*x]"), "f.yaml:1: an alias inside of what it names");
}

TEST(YamlTreeTest, RefusesControlCharactersAndMalformedUtf8) {
  EXPECT_THAT(ErrorOf("a: \"x\\0y\""), HasSubstr("control character"));
  EXPECT_THAT(ErrorOf("a: \xC3("), HasSubstr("malformed UTF-8"));
  EXPECT_EQ(Parsed("a: K\xC3\xB6ln").items[0].text, "K\xC3\xB6ln");
}

TEST(YamlTreeTest, BoundsNesting) {
  const auto nested = [](int levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  EXPECT_EQ(Parsed(nested(kMaxYamlDepth)).depth, kMaxYamlDepth);
  EXPECT_EQ(ErrorOf(nested(kMaxYamlDepth + 1)),
            "f.yaml:1: more than 64 lists and maps in each other");
  EXPECT_THAT(ErrorOf(std::string(100'000, '[')), HasSubstr("f.yaml:1: "));
}

TEST(YamlTreeTest, BoundsNestingThroughAliases) {
  std::string text = "a0: &a0 [x]\n";
  for (int i = 1; i < 70; ++i) absl::StrAppend(&text, "a", i, ": &a", i, " [*a", i - 1, "]\n");
  EXPECT_EQ(ErrorOf(text), "f.yaml:64: more than 64 lists and maps in each other");
}

TEST(YamlTreeTest, BoundsWhatAliasesExpandTo) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string alias = absl::StrCat("*a", i - 1);
    absl::StrAppend(&text, "a", i, ": &a", i, " [", alias);
    for (int copy = 1; copy < 10; ++copy) absl::StrAppend(&text, ", ", alias);
    absl::StrAppend(&text, "]\n");
  }
  EXPECT_THAT(ErrorOf(text), HasSubstr("more than 100000 values when aliases are expanded"));
}

TEST(YamlTreeTest, BoundsTheSizeOfATextAndOfItsFile) {
  const std::string large = "a: " + std::string(kMaxYamlBytes, 'x');
  EXPECT_EQ(ErrorOf(large), "f.yaml: over 1048576 bytes, the most that an experiment may have");
  EXPECT_EQ(ReadYamlFile("/dev/zero").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(YamlTreeTest, AMissingFileIsNamed) {
  EXPECT_EQ(ReadYamlFile("/nonexistent/e.yaml").status(),
            absl::NotFoundError("/nonexistent/e.yaml: cannot be read: No such file or directory"));
  EXPECT_THAT(std::string(ReadYamlFile("/proc").status().message()), StartsWith("/proc: cannot"));
}

TEST(YamlTreeTest, ATreeIsWrittenOnOneLineAndReadsBack) {
  const std::string line =
      R"({a: [1e-3, -1, .5, "8", "x: y, z", null], "b c": {codec: topk, on: true}, d: [], e: {}})";
  EXPECT_EQ(YamlText(Parsed(line)), line);
  EXPECT_EQ(YamlText(Parsed("a:\n- b: x, y\n  c: it's\n")), R"({a: [{b: "x, y", c: "it's"}]})");
}

}  // namespace
}  // namespace thinwire
