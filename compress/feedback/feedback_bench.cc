// Benchmark of what compensation costs on top of its codec. Measures fp32 bytes of the tensor per
// second at the sender and at the receiver, for every kind and storage, beside memcpy of the same
// 25 MiB in the same run. One thread.
//   bazel run --config=opt //compress/feedback:feedback_bench -- --benchmark_repetitions=30
//     --benchmark_enable_random_interleaving=true --benchmark_min_time=0.02
//     --benchmark_report_aggregates_only=true
#include <benchmark/benchmark.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "base/random.h"
#include "compress/codecs/new_codec.h"
#include "compress/cpu/kernels.h"
#include "compress/feedback/feedback.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

const Shape kShape = {100, 32, 32, 64};  // ResNet-18's first cut at batch 100

// Returns two messages in turn: x of a step and, nearly equal, x of the next.
const Tensor& MessageOf(int turn) {
  static const std::vector<Tensor>* const messages = [] {
    auto* made = new std::vector<Tensor>;
    for (int i = 0; i < 2; ++i)
      made->push_back(*Tensor::Allocate(CpuDevice(), DType::kF32, kShape));
    RandomStream random(RandomKey(1, "bench"));
    for (int64_t i = 0; i < kShape.elements(); ++i) {
      const float value = random.NextFloat() + random.NextFloat() + random.NextFloat() - 1.5f;
      (*made)[0].floats()[i] = value;
      (*made)[1].floats()[i] = value + 0.01f * random.NextFloat();
    }
    return made;
  }();
  return (*messages)[turn % 2];
}

FeedbackOptions OptionsOf(const FeedbackSpec& spec) {
  FeedbackOptions options;
  options.spec = spec;
  options.sample = kShape.WithBatch(1);
  options.device = CpuDevice();
  options.kernels = CpuCodecKernels();
  return options;
}

void SetBytes(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * kShape.elements() * 4);
}

void Memcpy(benchmark::State& state) {
  const Tensor y = *Tensor::Allocate(CpuDevice(), DType::kF32, kShape);
  for (auto _ : state) {
    std::memcpy(y.data(), MessageOf(0).data(), y.bytes());
    benchmark::ClobberMemory();
  }
  SetBytes(state);
}

// Runs messages through both ends, so that state is what it is in training. Only one end is timed.
void Run(benchmark::State& state, const FeedbackSpec& spec, const CodecSpec& codec_spec,
         bool time_sender) {
  const auto codec = std::move(*NewCodec(codec_spec, CpuCodecKernels()));
  const auto sender = std::move(*FeedbackSender::New(OptionsOf(spec)));
  const auto receiver = std::move(*FeedbackReceiver::New(OptionsOf(spec)));
  std::vector<uint64_t> rows(kShape[0]);
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<uint8_t> payload(FeedbackMaxPayloadBytes(spec, *codec, kShape, DType::kF32));
  FeedbackSender::Outgoing outgoing;
  outgoing.rows = rows;
  FeedbackReceiver::Incoming incoming;
  incoming.shape = kShape;
  incoming.rows = rows;
  int turn = 0;
  for (auto _ : state) {
    if (!time_sender) state.PauseTiming();
    outgoing.x = &MessageOf(turn++);
    const auto encoded = sender->Encode(*codec, outgoing, absl::MakeSpan(payload));
    if (!encoded.ok()) return state.SkipWithError("encode failed");
    time_sender ? state.PauseTiming() : state.ResumeTiming();
    incoming.payload = absl::MakeConstSpan(payload).subspan(0, encoded->bytes);
    if (!receiver->Decode(*codec, incoming).ok()) return state.SkipWithError("decode failed");
    if (time_sender) state.ResumeTiming();
  }
  SetBytes(state);
}

void Register(const FeedbackSpec& spec, const CodecSpec& codec) {
  std::string name = std::string(Name(spec.kind)) + "/" + Name(codec.kind);
  if (spec.kind != FeedbackKind::kNone) name += std::string("/") + Name(spec.store);
  benchmark::RegisterBenchmark((name + "/sender").c_str(), Run, spec, codec, true);
  benchmark::RegisterBenchmark((name + "/receiver").c_str(), Run, spec, codec, false);
}

void RegisterAll() {
  benchmark::RegisterBenchmark("memcpy", Memcpy);
  CodecSpec topk, uniform;
  topk.kind = CodecKind::kTopK;
  topk.ratio = 0.1;
  topk.scope = Scope::kSample;
  uniform.kind = CodecKind::kUniform;
  uniform.bits = 4;
  for (const CodecSpec& codec : {topk, uniform}) {
    FeedbackSpec spec;
    Register(spec, codec);
    for (FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kEf21}) {
      spec.kind = kind;
      for (StateStorage store :
           {StateStorage::kF32, StateStorage::kF16, StateStorage::kQ8, StateStorage::kQ4}) {
        spec.store = store;
        Register(spec, codec);
      }
    }
  }
  FeedbackSpec split;
  split.kind = FeedbackKind::kSplit;
  Register(split, topk);
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  thinwire::RegisterAll();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
