#include "coordinator/doctor/diagnosis.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text.h"

namespace thinwire {
namespace {

constexpr char kNone[] = "none";
constexpr double kMega = 1e6, kGiga = 1e9, kMilli = 1e-3;

// Returns "stage 1", or "stage 1 of carrier 0" of several.
std::string PlaceOf(uint32_t stage, uint32_t carrier, const Diagnosis& diagnosis) {
  return diagnosis.carriers() > 1 ? absl::StrCat("stage ", stage, " of carrier ", carrier)
                                  : absl::StrCat("stage ", stage);
}

// Returns the same for a table, "1" or "c0s1".
std::string ShortPlaceOf(uint32_t stage, uint32_t carrier, const Diagnosis& diagnosis) {
  return diagnosis.carriers() > 1 ? absl::StrCat("c", carrier, "s", stage) : absl::StrCat(stage);
}

std::string NameOf(const StageHealth& stage, const Diagnosis& diagnosis) {
  return absl::StrCat(PlaceOf(stage.stage(), stage.carrier(), diagnosis), " (", stage.address(),
                      ")");
}

// Returns whether that stage could not be asked.
bool IsBlamed(uint32_t stage, uint32_t carrier, const Diagnosis& diagnosis) {
  for (const StageHealth& health : diagnosis.stages()) {
    if (health.stage() == stage && health.carrier() == carrier) return health.has_error();
  }
  return false;
}

struct Choice {
  std::string codec = kNone;
  double speedup = 1;
};

// Returns the codec with the least time per byte at that link rate.
Choice BestAt(double bits_per_second, bool gradient, const Diagnosis& diagnosis) {
  Choice best;
  if (bits_per_second <= 0) return best;
  const double plain = 8 / bits_per_second;
  for (const CodecOffer& offer : diagnosis.codecs()) {
    if (offer.gradient() != gradient) continue;
    const double coded = plain * offer.payload_per_byte() + offer.codec_seconds_per_byte();
    if (plain / coded > best.speedup) best = {offer.codec(), plain / coded};
  }
  return best;
}

void Choose(LinkHealth* link, const Diagnosis& diagnosis) {
  const Choice down = BestAt(link->down_bits_per_second(), /*gradient=*/false, diagnosis);
  link->set_down_codec(down.codec);
  link->set_down_speedup(down.speedup);
  const Choice up = BestAt(link->up_bits_per_second(), /*gradient=*/true, diagnosis);
  link->set_up_codec(up.codec);
  link->set_up_speedup(up.speedup);
}

void CheckStage(const StageHealth& stage, const HealthLimits& limits, Diagnosis* diagnosis) {
  if (stage.has_error()) return diagnosis->add_problems(stage.error());
  if (!limits.build.empty() && stage.build_id() != limits.build) {
    diagnosis->add_problems(absl::StrCat(NameOf(stage, *diagnosis), " is of build \"",
                                         stage.build_id(), "\", this program of build \"",
                                         limits.build, "\""));
  }
  const double offset = stage.clock_offset_seconds();
  if (std::abs(offset) - stage.clock_uncertainty_seconds() > limits.most_clock_seconds) {
    diagnosis->add_problems(absl::StrFormat(
        "%s: its clock is %.3f s %s this machine's, want at most %g s: certificates, logs and "
        "metrics go by it",
        NameOf(stage, *diagnosis), std::abs(offset), offset > 0 ? "ahead of" : "behind",
        limits.most_clock_seconds));
  }
}

void CheckLink(const LinkHealth& link, const HealthLimits& limits, Diagnosis* diagnosis) {
  const std::string name =
      absl::StrCat("link from ", PlaceOf(link.from(), link.from_carrier(), *diagnosis), " to ",
                   PlaceOf(link.to(), link.to_carrier(), *diagnosis));
  if (link.has_error()) {
    return diagnosis->add_problems(absl::StrCat(name, ": ", link.error()));
  }
  for (const auto& [way, rate] : {std::pair("down", link.down_bits_per_second()),
                                  std::pair("up", link.up_bits_per_second())}) {
    if (rate >= limits.least_link_bits_per_second) continue;
    diagnosis->add_problems(absl::StrFormat("%s: %.3g Mbit/s %s, want at least %g (--min_mbit)",
                                            name, rate / kMega, way,
                                            limits.least_link_bits_per_second / kMega));
  }
}

std::string StageTable(const Diagnosis& diagnosis) {
  std::string text = absl::StrFormat("%-5s %-24s %5s %10s %9s %-18s %s\n", "stage", "address",
                                     "cores", "memory GB", "rtt ms", "clock ms", "SIMD, processor");
  for (const StageHealth& stage : diagnosis.stages()) {
    const std::string place = ShortPlaceOf(stage.stage(), stage.carrier(), diagnosis);
    if (stage.has_error()) {
      absl::StrAppendFormat(&text, "%-5s %-24s cannot be asked\n", place, stage.address());
      continue;
    }
    absl::StrAppendFormat(
        &text, "%-5s %-24s %5u %10.1f %9.3f %-18s %s, %s\n", place, stage.address(), stage.cores(),
        static_cast<double>(stage.memory_bytes()) / kGiga, stage.round_trip_seconds() / kMilli,
        absl::StrFormat("%+.2f +- %.2f", stage.clock_offset_seconds() / kMilli,
                        stage.clock_uncertainty_seconds() / kMilli),
        stage.simd_target(), stage.cpu_model());
  }
  return text;
}

std::string Offered(const std::string& codec, double speedup) {
  return codec == kNone ? "none" : absl::StrFormat("%s, %.1f x", codec, speedup);
}

std::string LinkTable(const Diagnosis& diagnosis) {
  if (diagnosis.links().empty()) return "";
  const int width = diagnosis.carriers() > 1 ? 12 : 8;
  std::string text =
      absl::StrFormat("\n%-*s %9s %12s %12s  %s\n", width, "link", "rtt ms", "down Mbit/s",
                      "up Mbit/s", "soonest: activations | gradients");
  for (const LinkHealth& link : diagnosis.links()) {
    const std::string name =
        absl::StrCat(ShortPlaceOf(link.from(), link.from_carrier(), diagnosis), " -> ",
                     ShortPlaceOf(link.to(), link.to_carrier(), diagnosis));
    if (link.has_error()) {
      absl::StrAppendFormat(&text, "%-*s not measured\n", width, name);
      continue;
    }
    absl::StrAppendFormat(&text, "%-*s %9.3f %12.1f %12.1f  %s | %s\n", width, name,
                          link.round_trip_seconds() / kMilli, link.down_bits_per_second() / kMega,
                          link.up_bits_per_second() / kMega,
                          Offered(link.down_codec(), link.down_speedup()),
                          Offered(link.up_codec(), link.up_speedup()));
  }
  return text;
}

std::string CodecTable(const Diagnosis& diagnosis) {
  if (diagnosis.codecs().empty()) return "";
  std::string text = absl::StrFormat("\n%-24s %-10s %8s %13s %22s\n", "codec", "direction", "ratio",
                                     "codec GB/s", "pays below Mbit/s");
  for (const CodecOffer& offer : diagnosis.codecs()) {
    absl::StrAppendFormat(&text, "%-24s %-10s %6.1f x %13.2f %22s\n", offer.codec(),
                          offer.gradient() ? "gradient" : "activation",
                          1 / offer.payload_per_byte(), 1 / offer.codec_seconds_per_byte() / kGiga,
                          offer.break_even_bits_per_second() > 0
                              ? absl::StrFormat("%.0f", offer.break_even_bits_per_second() / kMega)
                              : "-");
  }
  return text;
}

}  // namespace

void Diagnose(const HealthLimits& limits, Diagnosis* diagnosis) {
  for (const StageHealth& stage : diagnosis->stages()) CheckStage(stage, limits, diagnosis);
  for (LinkHealth& link : *diagnosis->mutable_links()) {
    if (!link.has_error()) Choose(&link, *diagnosis);
    if (!IsBlamed(link.from(), link.from_carrier(), *diagnosis) &&
        !IsBlamed(link.to(), link.to_carrier(), *diagnosis)) {
      CheckLink(link, limits, diagnosis);
    }
  }
}

std::string FormatDiagnosis(const Diagnosis& diagnosis) {
  std::string text =
      absl::StrCat(StageTable(diagnosis), LinkTable(diagnosis), CodecTable(diagnosis), "\n");
  for (const std::string& problem : diagnosis.problems()) {
    absl::StrAppend(&text, "problem: ", PrintableLine(problem), "\n");
  }
  for (const std::string& warning : diagnosis.warnings()) {
    absl::StrAppend(&text, PrintableLine(warning), "\n");
  }
  if (diagnosis.problems().empty()) absl::StrAppend(&text, "nothing is wrong\n");
  return text;
}

}  // namespace thinwire
