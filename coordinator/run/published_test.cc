#include "coordinator/run/published.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "config/experiment.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A folder with a small Llama's config.json.
class PublishedTest : public ::testing::Test {
 protected:
  PublishedTest() {
    fs::remove_all(dir_);
    fs::create_directories(dir_);
    Write("config.json",
          R"({"model_type": "llama", "hidden_size": 8, "intermediate_size": 16, "vocab_size": 605,
              "num_hidden_layers": 4, "num_attention_heads": 2, "max_position_embeddings": 2048})");
  }
  ~PublishedTest() override { fs::remove_all(dir_); }
  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(dir_ + "/" + name) << content;
  }
  Experiment Parsed(const std::string& file, const std::vector<std::string>& overrides = {}) const {
    const auto experiment = ParseExperiment(file, dir_, overrides);
    EXPECT_TRUE(experiment.ok()) << experiment.status();
    return experiment.ok() ? *experiment : Experiment();
  }

  const std::string dir_ = ::testing::TempDir() + "/published";
};

TEST_F(PublishedTest, IsAFolderWithAConfig) {
  EXPECT_TRUE(IsPublished(dir_));
  fs::remove(dir_ + "/config.json");
  EXPECT_FALSE(IsPublished(dir_));
}

TEST_F(PublishedTest, ToGenerateItNeedsNoText) {
  const Experiment e = Parsed(FileToGenerate(dir_, 600, /*is_whole=*/true));
  EXPECT_EQ(e.model().name(), "llama");
  EXPECT_EQ(e.model().classes(), 605u);
  EXPECT_EQ(e.data().context(), 1024u);
  EXPECT_EQ(e.data().corpus().vocabulary(), 600u);
  EXPECT_EQ(e.pipeline().stages(), 1u);
  EXPECT_EQ(Parsed(FileToGenerate(dir_, 600, /*is_whole=*/false)).pipeline().stages(), 4u);
  EXPECT_EQ(Parsed(FileToGenerate(dir_, 600, true), {"data.context=2000"}).data().context(), 2000u);
}

TEST_F(PublishedTest, SamplesAreNoLongerThanTheModelWasMadeFor) {
  Write("config.json",
        R"({"model_type": "gpt2", "n_embd": 8, "n_layer": 1, "n_head": 1, "vocab_size": 605,
            "n_positions": 77})");
  EXPECT_EQ(Parsed(FileToGenerate(dir_, 605, true)).data().context(), 77u);
  Write("config.json",
        R"({"model_type": "mistral", "hidden_size": 8, "intermediate_size": 16, "vocab_size": 605,
            "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2,
            "sliding_window": 55})");
  const Experiment windowed = Parsed(FileToGenerate(dir_, 605, true));
  EXPECT_EQ(windowed.data().context(), 1024u);
  EXPECT_EQ(windowed.model().window(), 55u);
}

TEST_F(PublishedTest, ToEvaluateItHasTheTokensOfTheFolder) {
  EXPECT_THAT(std::string(FileToEvaluate(dir_, "a.txt").status().message()),
              HasSubstr("has no tokenizer.json"));
  fs::copy_file("data/hf_testdata/bytes/tokenizer.json", dir_ + "/tokenizer.json");
  Write("a.txt", std::string(20000, 'a'));
  const auto file = FileToEvaluate(dir_, dir_ + "/a.txt");
  ASSERT_TRUE(file.ok()) << file.status();
  const Experiment e = Parsed(*file, {"data.context=8"});
  EXPECT_EQ(e.data().name(), "text");
  EXPECT_EQ(e.data().tokens(), "hf");
  EXPECT_EQ(e.data().vocabulary(), dir_);
  EXPECT_EQ(e.data().corpus().vocabulary(), 605u);
  const Experiment named = Parsed(*FileToEvaluate(dir_, "shakespeare"));
  EXPECT_EQ(named.data().name(), "shakespeare");
  EXPECT_EQ(named.data().tokens(), "hf");
}

TEST_F(PublishedTest, OfARunsModelTheTokensAreThoseOfItsTraining) {
  Write("vocabulary.json", R"({"tokens": "bytes"})");
  Write("config.json",
        R"({"model_type": "gpt2", "n_embd": 8, "n_layer": 1, "n_head": 1, "vocab_size": 256})");
  EXPECT_EQ(Parsed(*FileToEvaluate(dir_, "shakespeare")).data().tokens(), "bytes");
  Write("vocabulary.json", "[]");
  EXPECT_THAT(std::string(FileToEvaluate(dir_, "shakespeare").status().message()),
              HasSubstr("vocabulary.json: is no JSON map"));
}

}  // namespace
}  // namespace thinwire
