#include "compress/checks/conformance.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/random.h"
#include "base/status.h"
#include "compress/checks/conformance_subject.h"
#include "compress/checks/distortion.h"

namespace thinwire {
namespace {

using Result = absl::StatusOr<std::string>;
using Subject = ConformanceSubject;

template <typename... Parts>
absl::Status Broken(const Parts&... parts) {
  return absl::InternalError(absl::StrCat(parts...));
}

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() &&
         (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

bool IsFinite(const Tensor& x) {
  return std::all_of(x.floats().begin(), x.floats().end(),
                     [](float v) { return std::isfinite(v); });
}

// Returns messages of the shapes that the codec takes, of normal values and of a ReLU's output.
absl::StatusOr<std::vector<TrialMessage>> Ordinary(const Subject& s) {
  std::vector<TrialMessage> all;
  for (const Shape& shape : s.shapes()) {
    for (bool relu : {false, true}) {
      ASSIGN_OR_RETURN(TrialMessage m, s.Random(shape, relu));
      all.push_back(std::move(m));
    }
  }
  return all;
}

Result BoundHolds(const Subject& s) {
  ASSIGN_OR_RETURN(const std::vector<TrialMessage> messages, Ordinary(s));
  size_t bytes = 0, bounds = 0;
  for (const TrialMessage& m : messages) {
    ASSIGN_OR_RETURN(const std::vector<uint8_t> payload, s.Encode(m));
    bytes += payload.size();
    bounds += s.codec().MaxPayloadBytes(m.x.shape(), m.x.dtype());
  }
  return absl::StrCat(bytes, " bytes of ", bounds, " in ", messages.size(), " messages");
}

Result DecodeOverwrites(const Subject& s) {
  ASSIGN_OR_RETURN(const std::vector<TrialMessage> messages, Ordinary(s));
  for (const TrialMessage& m : messages) {
    ASSIGN_OR_RETURN(const std::vector<uint8_t> payload, s.Encode(m));
    ASSIGN_OR_RETURN(const Tensor y, s.DecodeOverAnything(payload, m));
    if (!IsFinite(y)) return Broken(m.name, ": finite values arrive as NaN or infinity");
  }
  return std::string();
}

Result EqualPayloads(const Subject& s) {
  ASSIGN_OR_RETURN(const std::vector<TrialMessage> messages, Ordinary(s));
  for (const uint64_t key : {1, 2}) {
    for (const TrialMessage& m : messages) {
      ASSIGN_OR_RETURN(const std::vector<uint8_t> payload, s.Encode(m, key));
      ASSIGN_OR_RETURN(const std::vector<uint8_t> again, s.Encode(m, key));
      if (payload != again) return Broken(m.name, ": two payloads of equal values and keys differ");
    }
  }
  return std::string();
}

Result CutsAreRefused(const Subject& s) {
  ASSIGN_OR_RETURN(const TrialMessage m, s.Random(s.shapes().front(), /*relu=*/false));
  ASSIGN_OR_RETURN(std::vector<uint8_t> payload, s.Encode(m));
  for (size_t length = 0; length < payload.size(); ++length) {
    if (s.Decode(absl::MakeConstSpan(payload.data(), length), m).ok()) {
      return Broken(m.name, ": a payload of ", payload.size(), " bytes is accepted cut to ",
                    length);
    }
  }
  const size_t whole = payload.size();
  for (const uint8_t extra : {0, 1, 255}) {
    payload.push_back(extra);
    if (s.Decode(payload, m).ok()) return Broken(m.name, ": a byte too many is accepted");
    payload.resize(whole);
  }
  return absl::StrCat(whole, " cuts");
}

// Checks that a damaged payload is refused or gives a tensor that does not depend on what the
// memory held before.
Result DamageIsHarmless(const Subject& s) {
  ASSIGN_OR_RETURN(const TrialMessage m, s.Random(s.shapes().front(), /*relu=*/false));
  ASSIGN_OR_RETURN(const std::vector<uint8_t> good, s.Encode(m));
  RandomStream random(RandomKey(2, "conformance"));
  constexpr int kTries = 3000;
  int accepted = 0;
  for (int i = 0; i < kTries; ++i) {
    std::vector<uint8_t> bad = good;
    if (i % 3 == 0) bad.resize(random.Below(static_cast<uint32_t>(2 * good.size() + 2)));
    const uint32_t changes = i % 3 == 1 ? 1 : 1 + random.Below(16);
    for (uint32_t c = 0; c < changes && !bad.empty(); ++c) {
      bad[random.Below(static_cast<uint32_t>(bad.size()))] = static_cast<uint8_t>(random.Next());
    }
    const absl::StatusOr<Tensor> y = s.DecodeOverAnything(bad, m);
    if (absl::IsInternal(y.status())) return y.status();
    accepted += y.ok();
  }
  return absl::StrCat(kTries - accepted, " of ", kTries, " damaged payloads refused");
}

// Checks that no finite value of a message arrives as NaN or infinity.
absl::Status Survives(const Subject& s, const TrialMessage& m) {
  ASSIGN_OR_RETURN(const std::vector<uint8_t> payload, s.Encode(m));
  ASSIGN_OR_RETURN(const Tensor y, s.DecodeOverAnything(payload, m));
  if (!IsFinite(y)) return Broken(m.name, ": finite values arrive as NaN or infinity");
  return absl::OkStatus();
}

Result ZerosArrive(const Subject& s) {
  for (const Shape& shape : s.shapes()) {
    ASSIGN_OR_RETURN(const TrialMessage m, s.Make("zeros", shape, [](int64_t) { return 0.0f; }));
    ASSIGN_OR_RETURN(const std::vector<uint8_t> payload, s.Encode(m));
    ASSIGN_OR_RETURN(const Tensor y, s.DecodeOverAnything(payload, m));
    for (const float value : y.floats()) {
      if (value != 0) return Broken(m.name, ": a zero arrives as ", value);
    }
  }
  return std::string();
}

Result SpecialTensorsArrive(const Subject& s) {
  const Shape& shape = s.shapes().front();
  const struct {
    const char* name;
    std::function<float(int64_t)> value;
  } specials[] = {{"constant", [](int64_t) { return 1.5f; }},
                  {"one spike", [](int64_t i) { return i == 3 ? -1e6f : 0.0f; }},
                  {"tiny values", [](int64_t i) { return (i % 5 - 2) * 1e-30f; }},
                  {"denormals", [](int64_t i) { return (i % 5 - 2) * 1e-44f; }},
                  {"large values", [](int64_t i) { return (i % 5 - 2) * 1e30f; }}};
  for (const auto& special : specials) {
    ASSIGN_OR_RETURN(const TrialMessage m, s.Make(special.name, shape, special.value));
    RETURN_IF_ERROR(Survives(s, m));
  }
  return std::string();
}

// Checks the smallest tensors, which a codec may refuse to carry.
Result SmallestTensors(const Subject& s) {
  std::string refused;
  for (const Shape& shape : {Shape{0, 8}, Shape{0, 5, 7}, Shape{1, 1}, Shape{1, 1, 1, 1}}) {
    ASSIGN_OR_RETURN(const TrialMessage m, s.Make("small", shape, [](int64_t) { return -0.75f; }));
    const absl::Status status = Survives(s, m);
    if (absl::IsInternal(status)) return status;
    if (!status.ok()) absl::StrAppend(&refused, refused.empty() ? "refused: " : ", ", m.name);
  }
  return refused;
}

// Checks that NaN and infinity are refused or carried: a codec that passes one on as a number hides
// a failed training run.
Result NonFiniteIsNotHidden(const Subject& s) {
  const Shape& shape = s.shapes().front();
  ASSIGN_OR_RETURN(const TrialMessage base, s.Random(shape, /*relu=*/false));
  int refused = 0, tried = 0;
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    for (const int64_t where : {int64_t{0}, shape.elements() / 2 + 1, shape.elements() - 1}) {
      if (s.spec().needs_support() && where % 3 == 1) continue;  // has no support
      ASSIGN_OR_RETURN(const TrialMessage m, s.Make("not finite", shape, [&](int64_t i) {
        return i == where ? bad : base.x.floats()[i];
      }));
      ++tried;
      const auto payload = s.Encode(m);
      if (!payload.ok()) {
        if (absl::IsInternal(payload.status())) return payload.status();
        ++refused;
        continue;
      }
      ASSIGN_OR_RETURN(const Tensor y, s.Decode(*payload, m));
      if (std::isfinite(y.floats()[where])) {
        return Broken(m.name, ": ", bad, " arrives as ", y.floats()[where]);
      }
    }
  }
  return std::string(refused == tried ? "refused" : refused == 0 ? "carried" : "some refused");
}

// Measures delta in ||D(C(x)) - x||^2 <= (1 - delta) ||x||^2, on which error feedback rests.
Result Contraction(const Subject& s) {
  const Shape& shape = s.shapes().back();
  std::string text = "delta";
  for (const bool relu : {false, true}) {
    ASSIGN_OR_RETURN(const TrialMessage m, s.Random(shape, relu));
    ASSIGN_OR_RETURN(const std::vector<uint8_t> payload, s.Encode(m));
    ASSIGN_OR_RETURN(const Tensor y, s.Decode(payload, m));
    ASSIGN_OR_RETURN(const Distortion d, MeasureDistortion(m.x, y, s.kernels()));
    const double delta = 1 - d.relative_error * d.relative_error;
    if (!std::isfinite(delta)) return Broken(m.name, ": relative error ", d.relative_error);
    absl::StrAppendFormat(&text, " %.4g on %s%s", delta, relu ? "a ReLU's" : "normal values",
                          delta > 0 ? "" : " (expands: no error feedback)");
    if (!relu) absl::StrAppend(&text, ",");
  }
  return text;
}

Result TwoThreadsAgree(const Subject& s) {
  const auto work = [&](bool relu) -> absl::Status {
    ASSIGN_OR_RETURN(const TrialMessage m, s.Random(s.shapes().back(), relu));
    ASSIGN_OR_RETURN(const std::vector<uint8_t> first, s.Encode(m));
    ASSIGN_OR_RETURN(const Tensor y, s.Decode(first, m));
    for (int i = 0; i < 30; ++i) {
      ASSIGN_OR_RETURN(const std::vector<uint8_t> payload, s.Encode(m));
      ASSIGN_OR_RETURN(const Tensor z, s.Decode(payload, m));
      if (payload != first || !SameBits(y, z)) {
        return Broken(m.name, ": differs while another thread uses the codec");
      }
    }
    return absl::OkStatus();
  };
  absl::Status other_status;
  std::thread other([&] { other_status = work(/*relu=*/true); });
  absl::Status status = work(/*relu=*/false);
  other.join();
  status.Update(other_status);
  RETURN_IF_ERROR(status);
  return std::string();
}

}  // namespace

absl::StatusOr<std::vector<ConformanceCheck>> ConformanceChecks(const CodecSpec& spec,
                                                                CodecKernels* kernels) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Subject> subject, Subject::New(spec, kernels));
  constexpr struct {
    const char* name;
    Result (*run)(const Subject&);
  } kChecks[] = {
      {"payloads are no longer than their bound", BoundHolds},
      {"decode overwrites every element", DecodeOverwrites},
      {"equal values and keys give equal payloads", EqualPayloads},
      {"every cut of a payload and every trailing byte is refused", CutsAreRefused},
      {"damaged payloads do no harm", DamageIsHarmless},
      {"zeros arrive as zeros", ZerosArrive},
      {"constants, spikes, tiny and large values arrive", SpecialTensorsArrive},
      {"empty tensors and single elements", SmallestTensors},
      {"NaN and infinity are refused or carried", NonFiniteIsNotHidden},
      {"contraction", Contraction},
      {"two threads at once", TwoThreadsAgree},
  };
  std::vector<ConformanceCheck> checks;
  for (const auto& check : kChecks) {
    checks.push_back({check.name, [subject, run = check.run] { return run(*subject); }});
  }
  return checks;
}

}  // namespace thinwire
