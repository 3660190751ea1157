// Measures what layers of language models compute on the CPU, beside memcpy and a product of
// matrices in the same run. Rates are per second of one thread's CPU time, or of the clock with
// --threads=N. The type is fp32, or bf16 with --bf16.
//   bazel run --config=opt //tests:ops_bench -- --benchmark_enable_random_interleaving=true
//     --benchmark_repetitions=10 --benchmark_report_aggregates_only=true
// flop/s count a multiplication and an addition as two, and for attention only what is not masked.
// bytes/s count each array once for every time that it must be read or written.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "base/random.h"
#include "nn/cpu/ops.h"
#include "nn/rotary_testing.h"
#include "tensor/cpu/device.h"
#include "tensor/tensor.h"

namespace thinwire {
namespace {

int num_threads = 1;  // these two are set by main, before the first use of TheOps
DType compute = DType::kF32;

constexpr int64_t kWidth = 768, kVocabulary = 50257, kTokens = 1024;  // as in GPT-2

Ops* TheOps() {
  static Ops* const ops = NewCpuOps(num_threads).release();
  return ops;
}

// Makes a tensor of random values, uniform in [-1, 1).
Tensor RandomTensor(DType type, const Shape& shape) {
  Tensor wide = *Tensor::Allocate(CpuDevice(), DType::kF32, shape);
  RandomStream random(RandomKey(1, "bench"));
  for (float& value : wide.floats()) value = 2 * random.NextFloat() - 1;
  if (type == DType::kF32) return wide;
  Tensor narrow = *Tensor::Allocate(CpuDevice(), type, shape);
  if (!TheOps()->Convert(wide.view(), narrow.view()).ok()) return Tensor();
  return narrow;
}

float* Floats(const Tensor& x) { return static_cast<float*>(x.data()); }

// Measures `call`, which does `flops` operations and moves `bytes` bytes; 0 leaves a rate out.
template <typename Call>
void Measure(benchmark::State& state, double flops, double bytes, const Call& call) {
  const Error error = call();  // sets up what the first call sets up, and touches all memory
  if (!error.ok()) return state.SkipWithError(error.message);
  for (auto _ : state) {
    if (!call().ok()) return state.SkipWithError("failed");
    benchmark::ClobberMemory();
  }
  const auto rate = benchmark::Counter::kIsIterationInvariantRate;
  if (flops > 0) state.counters["flop/s"] = benchmark::Counter(flops, rate);
  if (bytes > 0) state.counters["bytes/s"] = benchmark::Counter(bytes, rate);
}

void Memcpy(benchmark::State& state) {
  const Tensor x = RandomTensor(DType::kF32, {16 << 20});
  const Tensor y = *Tensor::Allocate(CpuDevice(), DType::kF32, {16 << 20});
  Measure(state, 0, 2.0 * x.bytes(), [&] { return TheOps()->Convert(x.view(), y.view()); });
}

enum class LinearPass { kForward, kData, kWeights };

void LinearOf(benchmark::State& state, LinearPass pass, int64_t out) {
  LinearSpec spec;
  spec.in_features = kWidth;
  spec.out_features = out;
  spec.compute = compute;
  Linear* made = nullptr;
  Error error = TheOps()->NewLinear(spec, &made);
  if (!error.ok()) return state.SkipWithError(error.message);
  const std::unique_ptr<Linear> linear(made);
  const Tensor weights = RandomTensor(DType::kF32, {out, kWidth});
  const Tensor gradient = RandomTensor(DType::kF32, {out, kWidth});
  const Tensor x = RandomTensor(compute, {kTokens, kWidth}),
               y = RandomTensor(compute, {kTokens, out});
  error = linear->LoadWeights(Floats(weights), nullptr);
  Measure(state, 2.0 * kTokens * kWidth * static_cast<double>(out), 0, [&] {
    if (pass == LinearPass::kForward) return linear->Forward(x.view(), y.view());
    if (pass == LinearPass::kData) return linear->BackwardData(y.view(), x.view());
    return linear->BackwardWeights(x.view(), y.view(), Floats(gradient), nullptr);
  });
}

struct AttentionCase {
  int64_t head_size, positions;
  float rope_theta, dropout;
};

// Measures attention with 12 heads, on kTokens tokens in all or on one longer sample.
void AttentionOf(benchmark::State& state, const AttentionCase& of, bool backward) {
  AttentionSpec spec;
  spec.heads = spec.kv_heads = 12;
  spec.head_size = of.head_size;
  SetRopeTheta(static_cast<double>(of.rope_theta), &spec);
  spec.dropout = of.dropout;
  spec.compute = compute;
  Attention* made = nullptr;
  Error error = TheOps()->NewAttention(spec, &made);
  if (!error.ok()) return state.SkipWithError(error.message);
  const std::unique_ptr<Attention> attention(made);
  const int64_t batch = std::max<int64_t>(1, kTokens / of.positions), width = 12 * of.head_size;
  const Tensor qkv = RandomTensor(compute, {batch, of.positions, 3 * width});
  const Tensor dqkv = RandomTensor(compute, {batch, of.positions, 3 * width});
  const Tensor y = RandomTensor(compute, {batch, of.positions, width});
  const Tensor dy = RandomTensor(compute, {batch, of.positions, width});
  std::vector<float> log_sum_exp(batch * 12 * of.positions);
  error = attention->Forward({qkv.view(), y.view(), log_sum_exp.data(), 1, 0});
  const double pairs = 0.5 * static_cast<double>(of.positions * (of.positions + 1));
  const double product = 2.0 * static_cast<double>(batch * width) * pairs;
  Measure(state, (backward ? 5 : 2) * product, 0, [&] {
    if (!backward) return attention->Forward({qkv.view(), y.view(), log_sum_exp.data(), 1, 0});
    return attention->Backward(
        {qkv.view(), y.view(), dy.view(), dqkv.view(), log_sum_exp.data(), 1, 0});
  });
}

const Shape kHidden = {kTokens, 4 * kWidth};

void GeluOf(benchmark::State& state, Pointwise function, bool backward) {
  const Tensor x = RandomTensor(compute, kHidden), y = RandomTensor(compute, kHidden);
  const Tensor dx = RandomTensor(compute, kHidden);
  Measure(state, 0, (backward ? 3.0 : 2.0) * x.bytes(), [&] {
    return backward ? TheOps()->ApplyBackward(function, x.view(), y.view(), dx.view())
                    : TheOps()->Apply(function, x.view(), y.view());
  });
}

void SwigluOf(benchmark::State& state, bool backward) {
  const Tensor x = RandomTensor(compute, kHidden), dx = RandomTensor(compute, kHidden);
  const Tensor y = RandomTensor(compute, {kTokens, 2 * kWidth});
  Measure(state, 0, (backward ? 2.5 : 1.5) * x.bytes(), [&] {
    return backward ? TheOps()->SwigluBackward(x.view(), y.view(), dx.view())
                    : TheOps()->Swiglu(x.view(), y.view());
  });
}

void DropoutOf(benchmark::State& state) {
  const Tensor x = RandomTensor(compute, kHidden), y = RandomTensor(compute, kHidden);
  Dropout a;
  a.rate = 0.1f;
  a.x = x.view();
  a.y = y.view();
  Measure(state, 0, 2.0 * x.bytes(), [&] { return TheOps()->Drop(a); });
}

void CrossEntropyInPlace(benchmark::State& state) {
  const Tensor logits = RandomTensor(compute, {kTokens, kVocabulary});
  const std::vector<int32_t> labels(kTokens, 7);
  CrossEntropy a;
  a.logits = a.dlogits = logits.view();
  a.classes = kVocabulary;
  a.labels = labels.data();
  a.batch_size = kTokens;
  LossSums sums;
  Measure(state, 0, 2.0 * logits.bytes(), [&] { return TheOps()->SoftmaxCrossEntropy(a, &sums); });
}

void EmbeddingOf(benchmark::State& state, bool backward) {
  const Tensor table = RandomTensor(DType::kF32, {kVocabulary, kWidth});
  const Tensor y = RandomTensor(compute, {1, kTokens, kWidth});
  const Tensor ids = *Tensor::Allocate(CpuDevice(), DType::kI32, {1, kTokens});
  RandomStream random(1);
  for (int64_t i = 0; i < kTokens; ++i) {
    static_cast<int32_t*>(ids.data())[i] = static_cast<int32_t>(random.Below(kVocabulary));
  }
  Embedding a;
  a.ids = ids.view();
  a.table = Floats(table);
  a.vocabulary = kVocabulary;
  a.features = kWidth;
  a.y = y.view();
  EmbeddingBackward b;
  b.ids = a.ids;
  b.dy = a.y;
  b.dtable = Floats(table);
  b.vocabulary = kVocabulary;
  b.features = kWidth;
  const double rows = 4.0 * kTokens * kWidth;
  Measure(state, 0, (backward ? 2 * rows : rows) + static_cast<double>(y.bytes()),
          [&] { return backward ? TheOps()->EmbedBackward(b) : TheOps()->Embed(a); });
}

constexpr int64_t kParameters = 16 << 20;

void AdamWOf(benchmark::State& state, bool is_coded) {
  const Tensor state_of = RandomTensor(DType::kF32, {4, kParameters});
  float* const values = Floats(state_of);
  if (!TheOps()->Zero(values + 2 * kParameters, 2 * kParameters).ok()) return;
  AdamWParameter parameter = {
      values, values + kParameters, values + 2 * kParameters, values + 3 * kParameters, kParameters,
      0.1f};
  if (is_coded) {
    parameter.coded_mean = CodedMeanIn(parameter.mean, kParameters);
    parameter.coded_square = CodedMeanIn(parameter.square, kParameters);
  }
  AdamWUpdate update;
  update.parameters = &parameter;
  update.count = 1;
  update.step = 1;
  update.lr = 1e-4;
  update.beta1 = 0.9;
  update.beta2 = 0.95;
  update.epsilon = 1e-8;
  const double of_means = is_coded ? 4 * (1 + 4.0 / kMomentBlock) : 4 * 4;
  Measure(state, 0, (4 * 4 + of_means) * kParameters, [&] { return TheOps()->AdamW(update); });
}

void SumOfSquaresOf(benchmark::State& state) {
  const Tensor x = RandomTensor(DType::kF32, {kParameters});
  const FloatRange range{Floats(x), kParameters};
  double sum = 0;
  Measure(state, 0, static_cast<double>(x.bytes()),
          [&] { return TheOps()->SumsOfSquares(&range, 1, &sum); });
}

template <typename... Arguments>
void Register(const std::string& name, Arguments... arguments) {
  auto* const registered = benchmark::RegisterBenchmark(name.c_str(), arguments...);
  if (num_threads > 1) registered->UseRealTime();
}

void RegisterLinears() {
  for (const auto& [name, out] : {std::pair("mlp", 4 * kWidth), std::pair("head", kVocabulary)}) {
    const std::string linear = std::string("linear/") + name;
    Register(linear + "/forward", LinearOf, LinearPass::kForward, out);
    Register(linear + "/data", LinearOf, LinearPass::kData, out);
    Register(linear + "/weights", LinearOf, LinearPass::kWeights, out);
  }
}

void RegisterAttention() {
  for (int64_t head_size : {32, 64}) {
    for (int64_t positions : {64, 256, 1024}) {
      const std::string sizes = std::to_string(head_size) + "/" + std::to_string(positions);
      const AttentionCase plain{head_size, positions, 0, 0};
      Register("attention/" + sizes + "/forward", AttentionOf, plain, false);
      Register("attention/" + sizes + "/backward", AttentionOf, plain, true);
    }
  }
  const AttentionCase all{64, 1024, 10000, 0.1f};
  Register("attention/rope_and_dropout/64/1024/forward", AttentionOf, all, false);
  Register("attention/rope_and_dropout/64/1024/backward", AttentionOf, all, true);
}

void RegisterAll() {
  Register("memcpy", Memcpy);
  RegisterLinears();
  RegisterAttention();
  for (bool backward : {false, true}) {
    const std::string pass = backward ? "/backward" : "/forward";
    Register("gelu_tanh" + pass, GeluOf, Pointwise::kTanhGelu, backward);
    Register("gelu_exact" + pass, GeluOf, Pointwise::kExactGelu, backward);
    Register("swiglu" + pass, SwigluOf, backward);
    Register("embedding" + pass, EmbeddingOf, backward);
  }
  Register("dropout", DropoutOf);
  Register("cross_entropy", CrossEntropyInPlace);
  Register("adamw", AdamWOf, false);
  Register("adamw_with_codes", AdamWOf, true);
  Register("sum_of_squares", SumOfSquaresOf);
}

// Reads the arguments that the library left: --threads=N and --bf16. Returns false for any other.
bool ReadArguments(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    absl::string_view value = argv[i];
    if (value == "--bf16") {
      compute = DType::kBF16;
    } else if (!absl::ConsumePrefix(&value, "--threads=") ||
               !absl::SimpleAtoi(value, &num_threads) || num_threads < 1) {
      std::fprintf(stderr, "argument %s, want --bf16 or --threads=N with N of at least 1\n",
                   argv[i]);
      return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (!thinwire::ReadArguments(argc, argv)) return 1;
  thinwire::RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
