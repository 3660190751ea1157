#include "data/jsonl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JsonlTest : public testing::Test {
 protected:
  JsonlTest() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "/jsonl_" + test->name();
    std::filesystem::create_directories(folder_);
    options_.name = "jsonl";
    options_.text.tokens = TokenKind::kBytes;
    options_.text.context = 8;
    options_.text.file = folder_ + "/lines.jsonl";
  }
  ~JsonlTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << content;
  }
  // Writes texts of two characters, "00" and so on.
  void WriteTexts(int count) const {
    std::string lines;
    for (int i = 0; i < count; ++i)
      absl::StrAppend(&lines, "{\"text\": \"", i / 10, i % 10, "\"}\n");
    Write("lines.jsonl", lines);
  }

  DataSplits Load() const {
    auto splits = LoadData(options_);
    EXPECT_TRUE(splits.ok()) << splits.status();
    return *std::move(splits);
  }
  std::string Refusal() const { return std::string(LoadData(options_).status().message()); }

  std::string folder_;
  DataOptions options_;
};

// Returns a sample's text up to the first filler.
std::string TextOf(const Dataset& data, int64_t sample) {
  std::vector<int32_t> ids(static_cast<size_t>(data.labels_per_sample()));
  data.LoadTokens(sample, {}, absl::MakeSpan(ids));
  std::string text;
  for (const int32_t id : ids) {
    if (id == 0) break;
    text += static_cast<char>(id);
  }
  return text;
}

TEST_F(JsonlTest, LinesAreDividedInTheirOrder) {
  WriteTexts(20);
  options_.text.size = *MeasureCorpus(options_);
  EXPECT_EQ(options_.text.size, (CorpusSize{256, 0, 0, 18, 2}));
  const DataSplits splits = Load();
  const DatasetInfo info = *DescribeData(options_);
  EXPECT_EQ(info.train_samples, splits.train->size());
  EXPECT_EQ(info.test_samples, splits.test->size());
  EXPECT_EQ(info.labels, splits.train->labels_per_sample());
  EXPECT_EQ(info.sample, splits.train->sample_shape());
  EXPECT_EQ(info.classes, splits.train->classes());
  EXPECT_EQ(TextOf(*splits.train, 17), "17");
  EXPECT_EQ(TextOf(*splits.test, 0), "18");
}

TEST_F(JsonlTest, FilesOfTheirOwnFollowEachOtherAndBlankLinesAreNone) {
  Write("b.jsonl", "\n{\"text\": \"bb\"}\n \r\n");
  Write("a.jsonl", "{\"text\": \"a1\"}\r\n{\"text\": \"a2\"}");
  Write("val.json", "{\"text\": \"vv\"}\n");
  options_.text.file = "";
  options_.text.train = folder_ + "/*.jsonl";
  options_.text.test = folder_ + "/val.json";
  const DataSplits splits = Load();
  ASSERT_EQ(splits.train->size(), 3);
  EXPECT_EQ(TextOf(*splits.train, 1), "a2");
  EXPECT_EQ(TextOf(*splits.train, 2), "bb");
  EXPECT_EQ(TextOf(*splits.test, 0), "vv");
}

TEST_F(JsonlTest, LimitsAndHeldOutSamplesAreKept) {
  WriteTexts(20);
  options_.limit = 3;
  options_.test_limit = 1;
  EXPECT_EQ(Load().train->size(), 3);
  EXPECT_EQ(Load().test->size(), 1);
  options_.held_out = 5;
  const DataSplits splits = Load();
  EXPECT_EQ(TextOf(*splits.train, 2), "02");
  EXPECT_EQ(splits.test->size(), 1);
  EXPECT_EQ(TextOf(*splits.test, 0), "13") << "of the 18 for training the last five";
  options_.held_out = 18;
  EXPECT_THAT(Refusal(), HasSubstr("lines.jsonl hold 18 samples: want fewer"));
  options_.held_out = 0;
  options_.limit = 19;
  EXPECT_THAT(Refusal(), HasSubstr("a limit of 19 samples, but the training documents of"));
}

TEST_F(JsonlTest, ALineThatIsNoneIsNamedByItsNumber) {
  Write("lines.jsonl", "{\"text\": \"aa\"}\n\n{\"text\": 3}\n");
  EXPECT_EQ(Refusal(), options_.text.file + ":3: text is a number, want a text");
  Write("lines.jsonl",
        "{\"text\": \"aa\"}\n{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}");
  EXPECT_THAT(Refusal(), HasSubstr("lines.jsonl:2: has messages: want data.chat"));
  options_.text.chat = KnownChatFormat(ChatKind::kGemma);
  Write("lines.jsonl", "{\"messages\": [{\"role\": \"system\", \"content\": \"a\"}]}");
  EXPECT_THAT(Refusal(),
              HasSubstr("lines.jsonl:1: messages[0]: role is system, which format gemma"));
}

TEST_F(JsonlTest, KeysOfOtherNamesAreRead) {
  options_.text.keys = {"body", "question", "answer", "turns"};
  Write("lines.jsonl",
        "{\"body\": \"bb\", \"text\": 3}\n{\"question\": \"q\", \"answer\": \"a\"}\n"
        "{\"turns\": [{\"role\": \"user\", \"content\": \"u\"}, {\"role\": \"assistant\", "
        "\"content\": \"ab\"}]}\n{\"body\": \"cc\"}\n");
  options_.text.split = 0.75;
  options_.text.chat.kind = ChatKind::kOwn;
  options_.text.chat.user = options_.text.chat.assistant = "{}.";
  const DataSplits splits = Load();
  ASSERT_EQ(splits.train->size(), 3);
  EXPECT_EQ(TextOf(*splits.train, 0), "bb");
  EXPECT_EQ(TextOf(*splits.train, 1), "qa");
  EXPECT_EQ(TextOf(*splits.train, 2), "u.ab.");
  EXPECT_EQ(TextOf(*splits.test, 0), "cc");
  Write("lines.jsonl", "{\"question\": \"q\"}");
  EXPECT_EQ(Refusal(), options_.text.file + ":1: has a question, but no answer");
  options_.text.keys.text = "answer";
  EXPECT_EQ(Refusal(), "text and completion are both answer, want different keys");
}

TEST_F(JsonlTest, LinesThatAreNoneMayBeSkippedAndAreCounted) {
  options_.text.on_error = OnError::kSkip;
  Write("lines.jsonl", "{\"text\": \"aa\"}\n\n{\"text\": 3}\n{\"text\": \"bb\"}\nno\n");
  options_.text.split = 0.5;
  for (const char* when : {"encoded", "kept"}) {
    const CorpusSize size = *MeasureCorpus(options_);
    EXPECT_EQ(size, (CorpusSize{256, 0, 0, 1, 1})) << when;
    EXPECT_EQ(size.skipped_lines, 2) << when;
    EXPECT_EQ(size.first_skipped, "lines.jsonl:3: text is a number, want a text") << when;
  }
  EXPECT_EQ(TextOf(*Load().test, 0), "bb");
  options_.text.on_error = OnError::kStop;
  EXPECT_EQ(Refusal(), options_.text.file + ":3: text is a number, want a text");
}

TEST_F(JsonlTest, WhatIsSkippedOfBothPartsIsAddedUp) {
  options_.text.on_error = OnError::kSkip;
  Write("a.jsonl", "{\"text\": \"aa\"}\n");
  Write("b.jsonl", "{}\n{\"text\": \"bb\"}\n");
  options_.text.file = "";
  options_.text.train = folder_ + "/a.jsonl";
  options_.text.test = folder_ + "/b.jsonl";
  EXPECT_EQ(MeasureCorpus(options_)->skipped_lines, 1);
  EXPECT_THAT(MeasureCorpus(options_)->first_skipped,
              testing::StartsWith("b.jsonl:1: has none of"));
}

TEST_F(JsonlTest, WhatGivesNoSampleIsRefused) {
  Write("lines.jsonl", "{\"prompt\": \"long enough\", \"completion\": \"\"}\n{\"text\": \"aa\"}\n");
  options_.text.split = 0.5;
  EXPECT_THAT(Refusal(), HasSubstr("the 1 documents of " + options_.text.file +
                                   " that are for this have no token to learn in samples of 8"));
  Write("lines.jsonl", "");
  EXPECT_THAT(Refusal(), HasSubstr("the 0 documents"));
}

TEST_F(JsonlTest, AnotherCorpusThanPlannedIsRefused) {
  WriteTexts(20);
  options_.text.size = {256, 0, 0, 17, 3};
  EXPECT_THAT(Refusal(), HasSubstr("has 18 and 2 samples and a vocabulary of 256 for training and "
                                   "test, want 17 and 3 samples"));
}

TEST_F(JsonlTest, TheDigestChangesWithLinesFormatAndLoss) {
  std::set<uint64_t> digests;
  const auto add = [&] { digests.insert(Load().train->digest()); };
  Write("lines.jsonl", "{\"prompt\": \"a\", \"completion\": \"b\"}\n{\"text\": \"aa\"}\n");
  options_.text.split = 0.5;
  add();
  options_.text.loss_on = LossOn::kAll;
  add();
  options_.text.chat = KnownChatFormat(ChatKind::kChatml);
  add();
  options_.text.chat.default_system = "Be.";
  add();
  options_.text.packing = Packing::kBestFit;
  add();
  options_.text.keys.messages = "turns";
  add();
  options_.text.on_error = OnError::kSkip;
  add();
  Write("lines.jsonl", "{\"prompt\": \"a\", \"completion\": \"c\"}\n{\"text\": \"aa\"}\n");
  add();
  EXPECT_EQ(digests.size(), 8u);
}

TEST_F(JsonlTest, AnswersOfAConversationAreLabels) {
  Write("lines.jsonl",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"u\"}, {\"role\": \"assistant\", "
        "\"content\": \"ab\"}]}\n{\"text\": \"aa\"}\n");
  options_.text.split = 0.5;
  options_.text.chat.kind = ChatKind::kOwn;
  options_.text.chat.user = "{}:";
  options_.text.chat.assistant = "{}.";
  const DataSplits splits = Load();
  EXPECT_EQ(TextOf(*splits.train, 0), "u:ab.");
  std::vector<int32_t> labels(8);
  splits.train->Labels(0, {}, absl::MakeSpan(labels));
  EXPECT_THAT(labels, ElementsAre(-1, 'a', 'b', '.', -1, -1, -1, -1));
}

}  // namespace
}  // namespace thinwire
