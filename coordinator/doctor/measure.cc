#include "coordinator/doctor/measure.h"

#include <algorithm>
#include <map>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/secret.h"
#include "base/status.h"
#include "config/experiment.h"
#include "coordinator/plan/break_even.h"
#include "coordinator/plan/choices.h"
#include "coordinator/plan/codec_speeds.h"
#include "coordinator/trace/clock.h"

namespace thinwire {
namespace {

// A narrow ResNet. Codecs are measured on the message of its first cut.
constexpr char kExperiment[] = R"(
name: doctor
model: {name: resnet8, width: 32}
data: {name: digits, batch_size: 128}
optimizer: {name: sgd, lr: 0.05}
epochs: 1
device: cpu
)";
constexpr const char* kCodecs[] = {"fp16",
                                   "fp8",
                                   "uniform(bits=8)",
                                   "uniform(bits=4)",
                                   "ecsq(step=1)",
                                   "topk(ratio=0.1)",
                                   "topk(ratio=0.01)"};
constexpr int kClockReadings = 8;
constexpr double kLeaseSeconds = 120;
constexpr absl::Duration kCall = absl::Seconds(10);

absl::Status AskClock(StageClient* client, StageHealth* health) {
  std::vector<ClockReading> readings;
  for (int i = 0; i < kClockReadings; ++i) {
    ClockReading reading;
    reading.asked = absl::ToUnixNanos(absl::Now());
    ASSIGN_OR_RETURN(const RenewResponse answer, client->Renew(kCall, /*advances=*/0));
    reading.came = absl::ToUnixNanos(absl::Now());
    reading.answered = answer.unix_nanoseconds();
    readings.push_back(reading);
  }
  const auto quickest = std::min_element(readings.begin(), readings.end(),
                                         [](const ClockReading& a, const ClockReading& b) {
                                           return a.came - a.asked < b.came - b.asked;
                                         });
  health->set_round_trip_seconds(static_cast<double>(quickest->came - quickest->asked) * 1e-9);
  const ClockOffset offset = EstimateOffset(readings);
  health->set_clock_offset_seconds(static_cast<double>(offset.offset) * 1e-9);
  health->set_clock_uncertainty_seconds(static_cast<double>(offset.uncertainty) * 1e-9);
  return absl::OkStatus();
}

absl::Status Ask(StageClient* client, absl::Duration patience, StageHealth* health) {
  ASSIGN_OR_RETURN(const AcquireResponse answer,
                   client->Acquire(kLeaseSeconds, patience, [](const std::string&) {}));
  health->set_build_id(answer.build().build_id());
  health->set_cpu_model(answer.build().cpu_model());
  health->set_simd_target(answer.build().simd_target());
  health->set_cores(answer.cores());
  health->set_memory_bytes(answer.memory_bytes());
  return AskClock(client, health);
}

absl::StatusOr<MeasureLinkResponse> MeasureBetween(StageClient* from, StageClient* to) {
  const std::string secret = NewSecret();
  absl::StatusOr<MeasureLinkResponse> speed = absl::UnavailableError("not measured");
  const absl::Status answered =
      to->AnswerLink(secret, [&] { speed = from->MeasureLink(to->address(), secret); });
  return speed.ok() || answered.ok() || !absl::IsUnavailable(speed.status()) ? speed : answered;
}

}  // namespace

absl::StatusOr<Experiment> DoctorsExperiment(int stages) {
  return ParseExperiment(kExperiment, "the doctor's experiment",
                         {"pipeline.cuts=auto", absl::StrCat("pipeline.stages=", stages)});
}

void MeasureStages(Fleet* fleet, absl::Duration patience, Diagnosis* diagnosis) {
  std::vector<std::thread> asking;
  for (int i = 0; i < fleet->size(); ++i) {
    StageHealth* health = diagnosis->add_stages();
    health->set_stage(static_cast<uint32_t>(i));
    health->set_address(fleet->stage(i).address());
  }
  for (int i = 0; i < fleet->size(); ++i) {
    asking.emplace_back(
        [&client = fleet->stage(i), patience, health = diagnosis->mutable_stages(i)] {
          const absl::Status asked = Ask(&client, patience, health);
          if (!asked.ok()) health->set_error(std::string(asked.message()));
        });
  }
  for (std::thread& thread : asking) thread.join();
  for (int i = 0; i + 1 < fleet->size(); ++i) {
    LinkHealth* link = diagnosis->add_links();
    link->set_from(static_cast<uint32_t>(i));
    link->set_to(static_cast<uint32_t>(i) + 1);
    if (diagnosis->stages(i).has_error() || diagnosis->stages(i + 1).has_error()) {
      link->set_error("a stage of it cannot be asked");
      continue;
    }
    const auto speed = MeasureBetween(&fleet->stage(i), &fleet->stage(i + 1));
    if (!speed.ok()) {
      link->set_error(std::string(speed.status().message()));
      continue;
    }
    link->set_round_trip_seconds(speed->round_trip_seconds());
    link->set_down_bits_per_second(8 * speed->down_bytes_per_second());
    link->set_up_bits_per_second(8 * speed->up_bytes_per_second());
  }
  for (int i = 0; i < fleet->size(); ++i) {
    if (!diagnosis->stages(i).has_error()) fleet->stage(i).Release().IgnoreError();
  }
}

absl::StatusOr<std::vector<CodecOffer>> MeasureOffers() {
  ASSIGN_OR_RETURN(
      const Experiment experiment,
      ParseExperiment(kExperiment, "the doctor's experiment", {"pipeline.cuts=[layer1]"}));
  std::vector<CodecOffer> offers;
  for (const char* codec : kCodecs) {
    ChoiceOptions options;
    options.codecs = {codec};
    options.microbatches = {1};
    options.schedules = {{ScheduleKind::kGPipe}};
    ASSIGN_OR_RETURN(const Candidates candidates, CandidatesFor(experiment, options));
    std::map<Coding, CodingSpeed> codings;
    for (const Candidate& candidate : candidates.all) {
      if (candidate.codec == codec) RETURN_IF_ERROR(MeasureCodings(candidate.experiment, &codings));
    }
    for (const auto& [coding, speed] : codings) {
      CodecOffer offer;
      offer.set_codec(codec);
      offer.set_gradient(coding.gradient);
      offer.set_payload_per_byte(speed.payload_per_byte);
      offer.set_codec_seconds_per_byte(speed.encode_seconds_per_byte +
                                       speed.decode_seconds_per_byte);
      offer.set_break_even_bits_per_second(
          BreakEvenBitsPerSecond(1, speed.payload_per_byte, offer.codec_seconds_per_byte()));
      offers.push_back(offer);
    }
  }
  return offers;
}

}  // namespace thinwire
