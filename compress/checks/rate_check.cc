// Checks on captured tensors what docs/compression.md says of rates and frames. Every message of
// ecsq with a rate must take it within 1 %, unless no step of each quarter of an octave comes
// nearer. No frame may be over 1 % longer than the shortest of its forms. Covers every scope and
// two roundings, prints a line for each rate, and fails if any message breaks this.
//   thinwire run EXPERIMENT --set 'capture={steps: [20]}' --set compression.activations.codec=none
//     --set compression.gradients.codec=none --out runs/capture
//   bazel run --config=opt //compress/checks:rate_check -- $PWD/runs/capture/captures/*.safetensors
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/tensor_file.h"
#include "compress/codecs/rates.h"
#include "compress/codecs/round_trip_testing.h"
#include "compress/entropy/codes_place.h"
#include "compress/entropy/frame.h"
#include "compress/spec_text.h"

namespace thinwire {
namespace {

constexpr double kRates[] = {0.5, 1, 1.5, 2, 3, 4, 6, 8, 12};
constexpr const char* kScopes[] = {"tensor", "sample", "token", "group, group=32"};
constexpr const char* kRoundings[] = {"nearest", "dither"};
constexpr int kStepsOfOctave = 4;
constexpr double kMostOverShortest = 1.01;
constexpr uint64_t kKey = 5;

struct Tally {
  int messages = 0;
  int met = 0;         // within the tolerance
  int nearest = 0;     // not within it, but no step comes nearer
  double longest = 0;  // largest ratio of a frame to its shortest form
  int broken = 0;

  void Add(const Tally& more) {
    messages += more.messages;
    met += more.met;
    nearest += more.nearest;
    longest = std::max(longest, more.longest);
    broken += more.broken;
  }
};

absl::StatusOr<std::vector<Tensor>> ReadTensors(const std::string& path) {
  ASSIGN_OR_RETURN(const TensorFile file, ReadTensorFile(path));
  std::vector<Tensor> tensors;
  for (const StoredTensor& stored : file.contents.tensors) {
    if (stored.dtype != "F32") {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": ", stored.name, " is ", stored.dtype, ", want F32"));
    }
    Shape shape;
    for (const int64_t extent : stored.shape) shape.Append(extent);
    ASSIGN_OR_RETURN(Tensor x, Tensor::Allocate(CpuDevice(), DType::kF32, shape));
    std::memcpy(x.data(), stored.data.data(), x.bytes());
    tensors.push_back(std::move(x));
  }
  return tensors;
}

double BitsOf(size_t bytes, const Tensor& x) {
  return 8.0 * static_cast<double>(bytes) / static_cast<double>(x.elements());
}

// Returns whether a step of the grid brings a message nearer to the rate than `off`, in bits.
absl::StatusOr<bool> AStepIsNearer(CodecSpec spec, const Tensor& x, double off) {
  const double rate = spec.rate;
  spec.rate = 0;
  for (double octave = std::log2(kLeastStep); octave <= std::log2(kMostStep);
       octave += 1.0 / kStepsOfOctave) {
    spec.step = std::exp2(octave);
    ASSIGN_OR_RETURN(const auto payload, EncodeToBytes(spec, x, kKey));
    if (std::fabs(BitsOf(payload.size(), x) - rate) < off) return true;
  }
  return false;
}

// Returns the length of a payload's frame over that of the shortest form; 1 if it is stored.
absl::StatusOr<double> OverShortest(const CodecSpec& spec, const Tensor& x,
                                    const std::vector<uint8_t>& payload) {
  const bool is_stored = payload[0] == 0;
  const absl::Span<const uint8_t> frame = absl::MakeConstSpan(payload).subspan(1);
  absl::Span<const uint8_t> read = frame;
  const size_t most = CodecOf(spec)->MaxPayloadBytes(x.shape(), x.dtype());
  if (!is_stored) {
    ASSIGN_OR_RETURN(read, ReadEntropyFrame(frame, most));
  }
  const std::vector<uint8_t> bytes(read.begin(), read.end());
  size_t shortest = bytes.size();
  for (const EntropyForm form :
       {EntropyForm::kPlain, EntropyForm::kNeighbours, EntropyForm::kPairs}) {
    const size_t length = EntropyFrameOfForm(form, bytes, CodesOf(spec, x.shape())).size();
    if (length > 0) shortest = std::min(shortest, length);
  }
  return static_cast<double>(frame.size()) / static_cast<double>(shortest);
}

absl::StatusOr<Tally> Check(const CodecSpec& spec, const Tensor& x) {
  Tally tally;
  tally.messages = 1;
  ASSIGN_OR_RETURN(const auto payload, EncodeToBytes(spec, x, kKey));
  ASSIGN_OR_RETURN(tally.longest, OverShortest(spec, x, payload));
  const double off = std::fabs(BitsOf(payload.size(), x) - spec.rate);
  const bool is_large = x.elements() >= kLargeElements;
  if (off <= (is_large ? kWideRateTolerance : kRateTolerance) * spec.rate) {
    tally.met = 1;
  } else {
    ASSIGN_OR_RETURN(const bool is_nearer, AStepIsNearer(spec, x, off));
    tally.nearest = !is_nearer;
  }
  tally.broken = (tally.met + tally.nearest == 0) || tally.longest > kMostOverShortest;
  if (tally.broken) {
    std::printf("%s: %.3f bits, %.3f of the shortest form\n", spec.ToString().c_str(),
                BitsOf(payload.size(), x), tally.longest);
  }
  return tally;
}

absl::StatusOr<Tally> CheckRate(double rate, const std::vector<Tensor>& tensors) {
  Tally tally;
  for (const char* scope : kScopes) {
    for (const char* rounding : kRoundings) {
      ASSIGN_OR_RETURN(const CodecSpec spec,
                       ParseCodec(absl::StrCat("ecsq(rate=", rate, ", scope=", scope,
                                               ", rounding=", rounding, ")")));
      for (const Tensor& x : tensors) {
        ASSIGN_OR_RETURN(const Tally of_one, Check(spec, x));
        tally.Add(of_one);
      }
    }
  }
  return tally;
}

absl::StatusOr<bool> CheckFiles(const std::vector<std::string>& paths) {
  std::vector<Tensor> tensors;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(std::vector<Tensor> more, ReadTensors(path));
    for (Tensor& x : more) tensors.push_back(std::move(x));
  }
  int broken = 0;
  std::printf(
      "| bits an element | messages | within 1 %% | nearest | a nearer step | longest frame over "
      "its shortest form |\n|---|---|---|---|---|---|\n");
  for (const double rate : kRates) {
    ASSIGN_OR_RETURN(const Tally tally, CheckRate(rate, tensors));
    std::printf("| %g | %d | %d | %d | %d | %.4f |\n", rate, tally.messages, tally.met,
                tally.nearest, tally.messages - tally.met - tally.nearest, tally.longest);
    std::fflush(stdout);
    broken += tally.broken;
  }
  return broken == 0;
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: rate_check CAPTURE.safetensors...\n");
    return 2;
  }
  const auto holds = thinwire::CheckFiles({argv + 1, argv + argc});
  if (!holds.ok()) {
    std::fprintf(stderr, "rate_check: %s\n", std::string(holds.status().message()).c_str());
    return 2;
  }
  return *holds ? 0 : 1;
}
