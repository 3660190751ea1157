#include "compress/codecs/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "compress/codecs/new_codec.h"
#include "compress/codecs/round_trip_testing.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Library(const std::string& name) { return "compress/codecs/lib" + name + ".so"; }

CodecSpec SpecOf(uint64_t digest) {
  CodecSpec spec;
  spec.kind = CodecKind::kPlugin;
  spec.plugin = digest;
  return spec;
}

CodecSpec Fake(const std::string& mischief) {
  return SpecOf(*LoadPlugin(Library("fake"), "{\"mischief\": \"" + mischief + "\"}"));
}

absl::Status ErrorOf(const std::string& library, const std::string& parameters = "{}") {
  return LoadPlugin(Library(library), parameters).status();
}

TEST(PluginTest, IsACodecLikeAnyOther) {
  const CodecSpec spec = Fake("none");
  EXPECT_TRUE(CheckSpec(spec).ok());
  const Tensor x = TensorOf({2, 2}, {1, -2, 3, 4});
  EXPECT_EQ(EncodeToBytes(spec, x)->size(), 16u);
  EXPECT_THAT(*RoundTrip(spec, x), ElementsAre(1, -2, 3, 4));
}

TEST(PluginTest, WidensAndNarrowsBFloat) {
  EXPECT_THAT(*RoundTrip(Fake("none"), BFloatTensorOf({3}, {1, -0.5f, 96})),
              ElementsAre(1, -0.5f, 96));
}

TEST(PluginTest, TheDigestIsOfNameVersionAndParameters) {
  const uint64_t digest = *LoadPlugin(Library("fake"), "{}");
  EXPECT_EQ(*LoadPlugin(Library("fake"), ""), digest);
  EXPECT_EQ(*LoadPlugin(Library("fake"), R"({"other": 1, "mischief": "none"})"), digest);
  EXPECT_NE(*LoadPlugin(Library("fake"), R"({"other": 2})"), digest);
  EXPECT_NE(*LoadPlugin(Library("fake_renamed"), "{}"), digest);
}

TEST(PluginTest, HasItsOwnNameWherePeopleRead) {
  const CodecSpec spec = Fake("none");
  EXPECT_EQ(CodecName(spec), "fake");
  EXPECT_EQ(CodecText(spec), R"(fake 1.0 {"mischief":"none","other":1})");
  EXPECT_EQ(CodecName(SpecOf(77)), "plugin");
  EXPECT_EQ(CodecText(SpecOf(77)), "plugin(plugin=77)");
}

TEST(PluginTest, AnUnknownDigestIsNoCodec) {
  EXPECT_EQ(NewCodec(SpecOf(77), CpuCodecKernels()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(PluginTest, AMissingFileIsNamedWithTheLoadersReason) {
  const absl::Status status = LoadPlugin("no/such.so", "{}").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("no/such.so"), HasSubstr("cannot open shared object file")));
}

TEST(PluginTest, AFileThatIsNoLibraryIsNamedToo) {
  EXPECT_THAT(LoadPlugin("compress/codecs/plugin_test.cc", "{}").status().message(),
              HasSubstr("invalid ELF header"));
}

TEST(PluginTest, AnotherInterfaceIsRefusedNamingBoth) {
  const absl::Status status = ErrorOf("fake_newer");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("libfake_newer.so"), HasSubstr("built for interface 2"),
                    HasSubstr("this Thinwire has 1")));
}

TEST(PluginTest, ALibraryWithoutTheEntryIsRefused) {
  EXPECT_THAT(ErrorOf("fake_without_entry").message(),
              HasSubstr("undefined symbol: thinwire_codec"));
}

TEST(PluginTest, TheNameOfABuiltInCodecIsTaken) {
  EXPECT_THAT(ErrorOf("fake_topk").message(), HasSubstr("topk is that of a built-in codec"));
}

TEST(PluginTest, ParametersThatMakeNoSenseAreNamed) {
  EXPECT_THAT(ErrorOf("fake", "[1]").message(), HasSubstr("[1] are no JSON object"));
  EXPECT_THAT(ErrorOf("fake", "{").message(), HasSubstr("are no JSON object"));
  EXPECT_THAT(ErrorOf("fake", R"({"mischeif": 1})").message(),
              HasSubstr("unknown parameter \"mischeif\", nearest is \"mischief\""));
  EXPECT_THAT(ErrorOf("fake", R"({"mischief": "refuse"})").message(),
              HasSubstr("mischief is refuse, want another"));
}

TEST(PluginTest, ItsErrorsAreTheCodecs) {
  EXPECT_THAT(EncodeToBytes(Fake("none"), TensorOf({1, NAN})).status().message(),
              HasSubstr("fake: value 1 is not finite"));
  EXPECT_THAT(DecodeFromBytes(Fake("none"), {1, 2, 3}, {1}).status().message(),
              HasSubstr("fake: payload of 3 bytes, want 4"));
}

TEST(PluginTest, AnEncoderThatClaimsMoreThanItsBoundIsAnError) {
  const absl::Status status = EncodeToBytes(Fake("longer_than_bound"), TensorOf({1, 2})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("9 bytes, its bound is 8"));
}

TEST(PluginTest, RefusesPayloadMemoryBelowTheBound) {
  std::vector<uint8_t> payload(7);
  EXPECT_THAT(CodecOf(Fake("none"))
                  ->Encode(TensorOf({1, 2}), {}, absl::MakeSpan(payload))
                  .status()
                  .message(),
              HasSubstr("7 bytes, want 8"));
}

}  // namespace
}  // namespace thinwire
