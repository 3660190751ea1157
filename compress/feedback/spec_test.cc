#include "compress/feedback/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const FeedbackSpec& spec) { return std::string(CheckFeedback(spec).message()); }

TEST(FeedbackSpecTest, SpellsWhatMatters) {
  FeedbackSpec spec;
  EXPECT_EQ(spec.ToString(), "none");
  spec.kind = FeedbackKind::kEf21;
  spec.key = StateKey::kSample;
  spec.init = StateInit::kExact;
  EXPECT_EQ(spec.ToString(), "ef21(key=sample, init=exact, store=fp32)");
}

TEST(FeedbackSpecTest, NamesInvert) {
  StateStorage store{};
  ASSERT_TRUE(FromName("q4", &store).ok());
  EXPECT_EQ(store, StateStorage::kQ4);
  EXPECT_THAT(std::string(FromName("q5", &store).message()), HasSubstr("nearest is \"q8"));
}

TEST(FeedbackPresetsTest, ResolveToAKindAKeyAndAnInitialValue) {
  EXPECT_EQ(FindFeedbackPreset("lazy")->spec.ToString(), "ef(key=stream, store=fp32)");
  EXPECT_EQ(FindFeedbackPreset("aq_sgd")->spec.ToString(),
            "ef21(key=sample, init=exact, store=fp32)");
  EXPECT_EQ(FindFeedbackPreset("ef_mixed_b")->spec.kind, FeedbackKind::kSplit);
  EXPECT_THAT(std::string(FindFeedbackPreset("ef2").status().message()),
              HasSubstr("nearest is \"ef\""));
  for (const FeedbackPreset& preset : FeedbackPresets()) {
    EXPECT_TRUE(CheckFeedback(preset.spec).ok()) << preset.name;
  }
}

TEST(FeedbackSpecTest, RefusesWhatMakesNoSense) {
  FeedbackSpec spec;
  spec.kind = FeedbackKind::kEf;
  EXPECT_TRUE(CheckFeedback(spec).ok());
  spec.decay = 0;
  EXPECT_THAT(ErrorOf(spec), HasSubstr("decay is 0, want more than 0"));
  spec.decay = 1;
  spec.init = StateInit::kExact;
  EXPECT_THAT(ErrorOf(spec), HasSubstr("init is exact with kind ef"));
  spec.init = StateInit::kZero;
  spec.on_full = OnFull::kPlain;
  EXPECT_THAT(ErrorOf(spec), HasSubstr("without limit_bytes"));
}

}  // namespace
}  // namespace thinwire
