#include "backend/device_choice.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/annotated.h"

namespace thinwire {

absl::StatusOr<DeviceChoice> ParseDeviceChoice(absl::string_view text) {
  using Kind = DeviceChoice::Kind;
  if (text == "auto") return DeviceChoice{Kind::kAuto};
  if (text == "cpu") return DeviceChoice{Kind::kCpu};
  if (text == "cuda") return DeviceChoice{Kind::kCuda, 0};
  absl::string_view digits = text;
  int index = 0;
  if (absl::ConsumePrefix(&digits, "cuda:") && absl::SimpleAtoi(digits, &index) && index >= 0 &&
      digits == absl::StrCat(index)) {
    return DeviceChoice{Kind::kCuda, index};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("device \"", text, "\": want auto, cpu, cuda or cuda:N, N counting from 0"));
}

std::string ToString(const DeviceChoice& choice) {
  switch (choice.kind) {
    case DeviceChoice::Kind::kAuto:
      return "auto";
    case DeviceChoice::Kind::kCpu:
      return "cpu";
    case DeviceChoice::Kind::kCuda:
      return absl::StrCat("cuda:", choice.index);
  }
  return "unknown";
}

absl::StatusOr<DeviceDecision> DecideDevice(const DeviceChoice& choice,
                                            const absl::StatusOr<int>& devices) {
  const int count = devices.ok() ? *devices : 0;
  switch (choice.kind) {
    case DeviceChoice::Kind::kCpu:
      return DeviceDecision{};
    case DeviceChoice::Kind::kAuto:
      if (count > 0) return DeviceDecision{0, absl::StrCat("device auto: cuda:0 of ", count)};
      return DeviceDecision{
          -1, absl::StrCat("device auto: CPU, because ",
                           devices.ok() ? "there is no CUDA device" : devices.status().message())};
    case DeviceChoice::Kind::kCuda:
      break;
  }
  const std::string device = absl::StrCat("device ", ToString(choice));
  if (!devices.ok()) return Annotated(devices.status(), device);
  if (count == 0) {
    return absl::FailedPreconditionError(absl::StrCat(device, ": there is no CUDA device"));
  }
  if (choice.index >= count) {
    const std::string there_are =
        count == 1 ? "is 1 CUDA device, cuda:0"
                   : absl::StrCat("are ", count, " CUDA devices, cuda:0 to cuda:", count - 1);
    return absl::InvalidArgumentError(absl::StrCat(device, ": there ", there_are));
  }
  return DeviceDecision{choice.index, ""};
}

}  // namespace thinwire
