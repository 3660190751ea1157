#include "backend/device_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<DeviceDecision> Decide(absl::string_view text, const absl::StatusOr<int>& devices) {
  return DecideDevice(*ParseDeviceChoice(text), devices);
}

const absl::StatusOr<int> kNoBackend = absl::FailedPreconditionError("x.so is at none of /a, /b");

TEST(DeviceChoiceTest, TakesFourForms) {
  for (const auto& [text, meaning] :
       {std::pair("auto", "auto"), std::pair("cpu", "cpu"), std::pair("cuda", "cuda:0"),
        std::pair("cuda:0", "cuda:0"), std::pair("cuda:15", "cuda:15")}) {
    const auto choice = ParseDeviceChoice(text);
    ASSERT_TRUE(choice.ok()) << text;
    EXPECT_EQ(ToString(*choice), meaning);
  }
}

TEST(DeviceChoiceTest, RefusesOtherTexts) {
  for (const char* text : {"", "gpu", "cud", "CUDA", "cuda:", "cuda:x", "cuda:-1", "cuda:+1",
                           "cuda: 1", "cuda:01", "cuda:1 ", "cuda:99999999999", "cpu:0", "auto "}) {
    const auto choice = ParseDeviceChoice(text);
    EXPECT_EQ(choice.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(choice.status().message()),
                HasSubstr(std::string("\"") + text + "\": want auto, cpu, cuda or cuda:N"));
  }
}

TEST(DeviceChoiceTest, AutoTakesTheFirstDevice) {
  EXPECT_EQ(Decide("auto", 1)->index, 0);
  EXPECT_EQ(Decide("auto", 8)->index, 0);
  EXPECT_EQ(Decide("auto", 8)->note, "device auto: cuda:0 of 8");
}

TEST(DeviceChoiceTest, AutoFallsBackToTheCpuAndSaysWhy) {
  EXPECT_EQ(Decide("auto", 0)->index, -1);
  EXPECT_EQ(Decide("auto", 0)->note, "device auto: CPU, because there is no CUDA device");
  EXPECT_EQ(Decide("auto", kNoBackend)->index, -1);
  EXPECT_EQ(Decide("auto", kNoBackend)->note,
            "device auto: CPU, because x.so is at none of /a, /b");
}

TEST(DeviceChoiceTest, TheCpuIsTheCpu) {
  EXPECT_EQ(Decide("cpu", 8)->index, -1);
  EXPECT_EQ(Decide("cpu", kNoBackend)->index, -1);
  EXPECT_EQ(Decide("cpu", kNoBackend)->note, "");
}

TEST(DeviceChoiceTest, ADeviceByNumber) {
  EXPECT_EQ(Decide("cuda", 1)->index, 0);
  EXPECT_EQ(Decide("cuda:1", 2)->index, 1);
}

TEST(DeviceChoiceTest, ANumberTooHighNamesThoseThereAre) {
  EXPECT_EQ(
      Decide("cuda:9", 2).status(),
      absl::InvalidArgumentError("device cuda:9: there are 2 CUDA devices, cuda:0 to cuda:1"));
  EXPECT_EQ(Decide("cuda:1", 1).status(),
            absl::InvalidArgumentError("device cuda:1: there is 1 CUDA device, cuda:0"));
}

TEST(DeviceChoiceTest, CudaWithoutOneIsRefusedWithTheReason) {
  EXPECT_EQ(Decide("cuda", kNoBackend).status(),
            absl::FailedPreconditionError("device cuda:0: x.so is at none of /a, /b"));
  EXPECT_EQ(Decide("cuda:3", absl::UnavailableError("no driver")).status(),
            absl::UnavailableError("device cuda:3: no driver"));
  EXPECT_EQ(Decide("cuda", 0).status(),
            absl::FailedPreconditionError("device cuda:0: there is no CUDA device"));
}

}  // namespace
}  // namespace thinwire
