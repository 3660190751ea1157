#include "coordinator/doctor/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kBuild[] = "abc gcc 12.2.0 opt";

HealthLimits Limits() {
  HealthLimits limits;
  limits.build = kBuild;
  return limits;
}

// Two stages, a link of 100 Mbit/s down and 1 Gbit/s up, and two codecs that cost 10 and 1 ns a
// byte.
Diagnosis Healthy() {
  Diagnosis diagnosis;
  for (uint32_t i = 0; i < 2; ++i) {
    StageHealth* stage = diagnosis.add_stages();
    stage->set_stage(i);
    stage->set_address(i == 0 ? "a:1" : "b:1");
    stage->set_build_id(kBuild);
    stage->set_simd_target("AVX2");
    stage->set_cores(4);
    stage->set_memory_bytes(8000000000);
  }
  LinkHealth* link = diagnosis.add_links();
  link->set_to(1);
  link->set_round_trip_seconds(0.01);
  link->set_down_bits_per_second(100e6);
  link->set_up_bits_per_second(1e9);
  for (const bool gradient : {false, true}) {
    CodecOffer* small = diagnosis.add_codecs();
    small->set_codec("topk");
    small->set_gradient(gradient);
    small->set_payload_per_byte(0.1);
    small->set_codec_seconds_per_byte(10e-9);
    small->set_break_even_bits_per_second(8 * 0.9 / 10e-9);
    CodecOffer* quick = diagnosis.add_codecs();
    quick->set_codec("fp16");
    quick->set_gradient(gradient);
    quick->set_payload_per_byte(0.5);
    quick->set_codec_seconds_per_byte(1e-9);
    quick->set_break_even_bits_per_second(8 * 0.5 / 1e-9);
  }
  return diagnosis;
}

std::vector<std::string> ProblemsOf(Diagnosis diagnosis) {
  Diagnose(Limits(), &diagnosis);
  return {diagnosis.problems().begin(), diagnosis.problems().end()};
}

TEST(DiagnosisTest, TheCodecOfALinkIsWhatIsSoonestAtItsRate) {
  Diagnosis diagnosis = Healthy();
  Diagnose(Limits(), &diagnosis);
  EXPECT_THAT(diagnosis.problems(), IsEmpty());
  // Uncompressed 80 ns a byte; 8 + 10 by topk, 40 + 1 by fp16.
  EXPECT_EQ(diagnosis.links(0).down_codec(), "topk");
  EXPECT_NEAR(diagnosis.links(0).down_speedup(), 80.0 / 18, 1e-9);
  // Uncompressed 8 ns; 0.8 + 10 by topk, 4 + 1 by fp16.
  EXPECT_EQ(diagnosis.links(0).up_codec(), "fp16");
  EXPECT_NEAR(diagnosis.links(0).up_speedup(), 8.0 / 5, 1e-9);
}

TEST(DiagnosisTest, NoCodecPaysOnALinkThatIsFasterThanAllOfThem) {
  Diagnosis diagnosis = Healthy();
  diagnosis.mutable_links(0)->set_down_bits_per_second(100e9);
  Diagnose(Limits(), &diagnosis);
  EXPECT_EQ(diagnosis.links(0).down_codec(), "none");
  EXPECT_EQ(diagnosis.links(0).down_speedup(), 1);
}

TEST(DiagnosisTest, AnotherBuildIsNamedWithBoth) {
  Diagnosis diagnosis = Healthy();
  diagnosis.mutable_stages(1)->set_build_id("old");
  EXPECT_THAT(ProblemsOf(diagnosis),
              ElementsAre("stage 1 (b:1) is of build \"old\", this program of build \"" +
                          std::string(kBuild) + "\""));
}

TEST(DiagnosisTest, AClockThatMayBeRightIsNotBlamed) {
  Diagnosis diagnosis = Healthy();
  diagnosis.mutable_stages(0)->set_clock_offset_seconds(-1.2);
  diagnosis.mutable_stages(0)->set_clock_uncertainty_seconds(0.3);
  EXPECT_THAT(ProblemsOf(diagnosis), IsEmpty());
  diagnosis.mutable_stages(0)->set_clock_uncertainty_seconds(0.1);
  EXPECT_THAT(ProblemsOf(diagnosis),
              ElementsAre(HasSubstr("stage 0 (a:1): its clock is 1.200 s behind this machine's")));
}

TEST(DiagnosisTest, ASlowLinkIsNamedWithItsWay) {
  Diagnosis diagnosis = Healthy();
  diagnosis.mutable_links(0)->set_up_bits_per_second(2.5e6);
  EXPECT_THAT(ProblemsOf(diagnosis),
              ElementsAre("link from stage 0 to stage 1: 2.5 Mbit/s up, want at least 10 "
                          "(--min_mbit)"));
}

TEST(DiagnosisTest, ALinkIsNotBlamedForItsStage) {
  Diagnosis diagnosis = Healthy();
  diagnosis.mutable_links(0)->set_error("stage 1 does not listen");
  EXPECT_THAT(ProblemsOf(diagnosis),
              ElementsAre("link from stage 0 to stage 1: stage 1 does not listen"));
  diagnosis.mutable_stages(1)->set_error("stage 1 (b:1): Connection refused");
  EXPECT_THAT(ProblemsOf(diagnosis), ElementsAre("stage 1 (b:1): Connection refused"));
}

// The second stage is the first one's of another carrier.
Diagnosis TwoCarriers() {
  Diagnosis diagnosis = Healthy();
  diagnosis.set_carriers(2);
  for (int carrier = 0; carrier < 2; ++carrier) {
    diagnosis.mutable_stages(carrier)->set_stage(1);
    diagnosis.mutable_stages(carrier)->set_carrier(static_cast<uint32_t>(carrier));
  }
  diagnosis.mutable_links(0)->set_from(1);
  diagnosis.mutable_links(0)->set_to_carrier(1);
  return diagnosis;
}

TEST(DiagnosisTest, OfSeveralCarriersStagesAndLinksAreNamedByTheirs) {
  Diagnosis diagnosis = TwoCarriers();
  diagnosis.mutable_links(0)->set_down_bits_per_second(4.2e6);
  diagnosis.mutable_stages(1)->set_build_id("old");
  EXPECT_THAT(ProblemsOf(diagnosis),
              ElementsAre(HasSubstr("stage 1 of carrier 1 (b:1) is of build"),
                          "link from stage 1 of carrier 0 to stage 1 of carrier 1: 4.2 Mbit/s "
                          "down, want at least 10 (--min_mbit)"));
  const std::string text = FormatDiagnosis(diagnosis);
  EXPECT_THAT(text, HasSubstr("\nc1s1  b:1 "));
  EXPECT_THAT(text, HasSubstr("\nc0s1 -> c1s1 "));
}

TEST(DiagnosisTest, ALinkBetweenCarriersIsNotBlamedForItsStage) {
  Diagnosis diagnosis = TwoCarriers();
  diagnosis.mutable_links(0)->set_error("a stage of it cannot be asked");
  diagnosis.mutable_stages(1)->set_error("stage 1 of carrier 1 (b:1): Connection refused");
  EXPECT_THAT(ProblemsOf(diagnosis), ElementsAre("stage 1 of carrier 1 (b:1): Connection refused"));
}

TEST(DiagnosisTest, TheTextHasAllOfIt) {
  Diagnosis diagnosis = Healthy();
  diagnosis.mutable_stages(1)->set_error("stage 1 (b:1): \x1b[2J");
  Diagnose(Limits(), &diagnosis);
  const std::string text = FormatDiagnosis(diagnosis);
  for (const char* part :
       {"AVX2", "8.0", "100.0", "1000.0", "topk, 4.4 x | fp16, 1.6 x", "720", "4000",
        "1     b:1                      cannot be asked", "problem: stage 1 (b:1): \\x1b[2J\n"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(FormatDiagnosis(Healthy()), HasSubstr("\nnothing is wrong\n"));
}

}  // namespace
}  // namespace thinwire
