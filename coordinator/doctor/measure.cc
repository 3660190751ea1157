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
constexpr size_t kLinksALease = 4;  // which leases outlast, also where a link takes long to fail
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
  ASSIGN_OR_RETURN(
      const AcquireResponse answer,
      client->Acquire(kLeaseSeconds, patience, /*keeps_state=*/false, [](const std::string&) {}));
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

// Asks all stages at once.
void AskAll(Fleet* fleet, absl::Duration patience, Diagnosis* diagnosis) {
  std::vector<std::thread> asking;
  for (int i = 0; i < fleet->size(); ++i) {
    const StageClient& client = fleet->server(i);
    StageHealth* health = diagnosis->add_stages();
    health->set_stage(static_cast<uint32_t>(client.stage()));
    health->set_carrier(static_cast<uint32_t>(client.carrier()));
    health->set_address(client.address());
  }
  for (int i = 0; i < fleet->size(); ++i) {
    asking.emplace_back(
        [&client = fleet->server(i), patience, health = diagnosis->mutable_stages(i)] {
          const absl::Status asked = Ask(&client, patience, health);
          if (!asked.ok()) health->set_error(std::string(asked.message()));
        });
  }
  for (std::thread& thread : asking) thread.join();
}

// Renews the leases, also of stages whose links are measured later. What fails shows there.
void RenewAll(Fleet* fleet, const Diagnosis& diagnosis) {
  for (int i = 0; i < fleet->size(); ++i) {
    if (diagnosis.stages(i).has_error()) continue;
    fleet->server(i).Renew(kCall, /*advances=*/0).status().IgnoreError();
  }
}

// Adds `place`, one of LinksAmong, with what is measured there.
void MeasureLink(Fleet* fleet, const LinkHealth& place, Diagnosis* diagnosis) {
  LinkHealth* link = diagnosis->add_links();
  *link = place;
  StageClient& from =
      fleet->stage(static_cast<int>(place.from()), static_cast<int>(place.from_carrier()));
  StageClient& to =
      fleet->stage(static_cast<int>(place.to()), static_cast<int>(place.to_carrier()));
  if (diagnosis->stages(from.server()).has_error() || diagnosis->stages(to.server()).has_error()) {
    return link->set_error("a stage of it cannot be asked");
  }
  const auto speed = MeasureBetween(&from, &to);
  if (!speed.ok()) return link->set_error(std::string(speed.status().message()));
  link->set_round_trip_seconds(speed->round_trip_seconds());
  link->set_down_bits_per_second(8 * speed->down_bytes_per_second());
  link->set_up_bits_per_second(8 * speed->up_bytes_per_second());
}

}  // namespace

absl::StatusOr<Experiment> DoctorsExperiment(int stages) {
  return ParseExperiment(kExperiment, "the doctor's experiment",
                         {"pipeline.cuts=auto", absl::StrCat("pipeline.stages=", stages)});
}

std::vector<LinkHealth> LinksAmong(int carriers, int stages) {
  std::vector<LinkHealth> links;
  const auto add = [&links](int from_carrier, int from, int to_carrier, int to) {
    LinkHealth* link = &links.emplace_back();
    link->set_from_carrier(static_cast<uint32_t>(from_carrier));
    link->set_from(static_cast<uint32_t>(from));
    link->set_to_carrier(static_cast<uint32_t>(to_carrier));
    link->set_to(static_cast<uint32_t>(to));
  };
  for (int carrier = 0; carrier < carriers; ++carrier) {
    for (int i = 0; i + 1 < stages; ++i) add(carrier, i, carrier, i + 1);
  }
  for (int i = 0; i < stages; ++i) {
    for (int from = 0; from < carriers; ++from) {
      for (int to = from + 1; to < carriers; ++to) add(from, i, to, i);
    }
  }
  return links;
}

void MeasureStages(Fleet* fleet, absl::Duration patience, Diagnosis* diagnosis) {
  const std::vector<LinkHealth> links = LinksAmong(fleet->carriers(), fleet->stages());
  diagnosis->set_carriers(static_cast<uint32_t>(fleet->carriers()));
  AskAll(fleet, patience, diagnosis);
  for (size_t i = 0; i < links.size(); ++i) {
    if (i % kLinksALease == 0) RenewAll(fleet, *diagnosis);
    MeasureLink(fleet, links[i], diagnosis);
  }
  for (int i = 0; i < fleet->size(); ++i) {
    if (!diagnosis->stages(i).has_error()) fleet->server(i).Release().IgnoreError();
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
