#include "compress/checks/conformance.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/random.h"
#include "base/status.h"
#include "compress/checks/distortion.h"
#include "compress/codec.h"
#include "compress/codecs/new_codec.h"
#include "compress/support.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

constexpr uint8_t kGuard = 0xA5;
constexpr size_t kGuardBytes = 64;

// Message to test with: a tensor and, for codecs that use them, the received activation's
// non-zeros.
struct TrialMessage {
  std::string name;  // "zeros [2, 5, 7]"
  Tensor x;
  SupportMap support;
};

// One codec, and what the checks do with it.
class Subject {
 public:
  // Makes the codec and finds shapes that it takes. Returns an error if there is no such codec or
  // it refuses all shapes.
  static absl::StatusOr<std::shared_ptr<Subject>> New(const CodecSpec& spec,
                                                      CodecKernels* kernels) {
    ASSIGN_OR_RETURN(std::unique_ptr<Codec> codec, NewCodec(spec, kernels));
    std::shared_ptr<Subject> subject(new Subject(std::move(codec), kernels));
    absl::Status refusal;
    for (const Shape& shape :
         {Shape{2, 5, 7}, Shape{9, 40}, Shape{2, 6, 5, 16}, Shape{3, 12, 12, 96}}) {
      ASSIGN_OR_RETURN(const TrialMessage m, subject->Random(shape, /*relu=*/false));
      const absl::Status status = subject->Encode(m).status();
      if (status.ok()) {
        subject->shapes_.push_back(shape);
      } else {
        refusal = status;
      }
    }
    if (subject->shapes_.empty()) return refusal;
    return subject;
  }

  const CodecSpec& spec() const { return codec_->spec(); }
  const Codec& codec() const { return *codec_; }
  CodecKernels* kernels() const { return kernels_; }

  // Returns the common shapes that the codec accepts, smallest first; at least one.
  const std::vector<Shape>& shapes() const { return shapes_; }

  // Makes a message whose element i is value(i).
  absl::StatusOr<TrialMessage> Make(const std::string& name, const Shape& shape,
                                    const std::function<float(int64_t)>& value) const {
    TrialMessage m;
    m.name = absl::StrCat(name, " ", shape.ToString());
    ASSIGN_OR_RETURN(m.x, Tensor::Allocate(CpuDevice(), DType::kF32, shape));
    for (int64_t i = 0; i < m.x.elements(); ++i) m.x.floats()[i] = value(i);
    if (spec().needs_support()) {
      ASSIGN_OR_RETURN(const Tensor activation, Tensor::Allocate(CpuDevice(), DType::kF32, shape));
      for (int64_t i = 0; i < m.x.elements(); ++i) {
        activation.floats()[i] = i % 3 == 1 ? 0.0f : 1.0f;
      }
      ASSIGN_OR_RETURN(m.support, SupportMap::Of(activation, kernels_));
    }
    return m;
  }

  // Makes a message of nearly normally distributed values; with `relu`, half of them are zero.
  absl::StatusOr<TrialMessage> Random(const Shape& shape, bool relu) const {
    RandomStream random(RandomKey(1, "conformance"));
    return Make(relu ? "ReLU" : "random", shape, [&](int64_t) {
      float sum = -2;
      for (int i = 0; i < 4; ++i) sum += random.NextFloat();
      return relu ? std::max(sum, 0.0f) : sum;
    });
  }

  // Encodes a message. Also returns an error if the payload is longer than the codec's bound or if
  // bytes behind it were written.
  absl::StatusOr<std::vector<uint8_t>> Encode(const TrialMessage& m, uint64_t key = 1) const {
    const size_t bound = codec_->MaxPayloadBytes(m.x.shape(), m.x.dtype());
    std::vector<uint8_t> memory(bound + kGuardBytes, kGuard);
    MessageContext context = ContextOf(m, key);
    std::shared_ptr<const Carry> next;
    context.next_carry = &next;
    ASSIGN_OR_RETURN(const size_t bytes,
                     codec_->Encode(m.x, context, absl::MakeSpan(memory.data(), bound)));
    if (bytes > bound) {
      return absl::InternalError(
          absl::StrCat(m.name, ": payload of ", bytes, " bytes, the bound is ", bound));
    }
    if (std::count(memory.begin() + static_cast<ptrdiff_t>(bound), memory.end(), kGuard) !=
        kGuardBytes) {
      return absl::InternalError(absl::StrCat(m.name, ": bytes behind the bound were written"));
    }
    memory.resize(bytes);
    return memory;
  }

  // Decodes into memory that was filled with bytes `fill`.
  absl::StatusOr<Tensor> Decode(absl::Span<const uint8_t> payload, const TrialMessage& m,
                                uint8_t fill = 0xFF) const {
    // A copy of exactly its size, so that a memory checker sees reads behind it.
    const std::vector<uint8_t> own(payload.begin(), payload.end());
    ASSIGN_OR_RETURN(Tensor y, Tensor::Allocate(CpuDevice(), m.x.dtype(), m.x.shape()));
    if (y.bytes() > 0) std::memset(y.data(), fill, y.bytes());
    RETURN_IF_ERROR(codec_->Decode(own, ContextOf(m, /*key=*/0), &y));
    return y;
  }

  // Decodes twice, into memory with different contents. Returns an Internal error if the results
  // differ.
  absl::StatusOr<Tensor> DecodeOverAnything(absl::Span<const uint8_t> payload,
                                            const TrialMessage& m) const {
    ASSIGN_OR_RETURN(const Tensor y, Decode(payload, m, 0xFF));
    ASSIGN_OR_RETURN(const Tensor z, Decode(payload, m, 0x3F));
    if (y.bytes() > 0 && std::memcmp(y.data(), z.data(), y.bytes()) != 0) {
      return absl::InternalError(absl::StrCat(
          m.name, ": what decode gives depends on what lay there before, or changes by itself"));
    }
    return y;
  }

 private:
  Subject(std::unique_ptr<Codec> codec, CodecKernels* kernels)
      : codec_(std::move(codec)), kernels_(kernels) {}
  MessageContext ContextOf(const TrialMessage& m, uint64_t key) const {
    MessageContext context;
    context.random_key = key;
    if (spec().needs_support()) context.support = &m.support;
    return context;
  }

  std::unique_ptr<Codec> codec_;
  CodecKernels* kernels_;
  std::vector<Shape> shapes_;
};

using Result = absl::StatusOr<std::string>;

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

// Checks that no finite value of a message arrives as NaN or infinity.
absl::Status Survives(const Subject& s, const TrialMessage& m) {
  ASSIGN_OR_RETURN(const std::vector<uint8_t> payload, s.Encode(m));
  ASSIGN_OR_RETURN(const Tensor y, s.DecodeOverAnything(payload, m));
  if (!IsFinite(y)) return Broken(m.name, ": finite values arrive as NaN or infinity");
  return absl::OkStatus();
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
  for (const TrialMessage& m : messages) RETURN_IF_ERROR(Survives(s, m));
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
