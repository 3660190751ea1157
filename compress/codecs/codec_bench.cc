// Benchmark of the encode and decode speed of every codec, in fp32 bytes per second (encode: of its
// input, decode: of its output), beside memcpy of the same 25 MiB in the same run. Runs one thread,
// or N with --threads=N.
//   bazel run --config=opt //compress:codec_bench -- --benchmark_enable_random_interleaving=true
//     --benchmark_repetitions=30 --benchmark_min_time=0.02 --benchmark_report_aggregates_only=true
#include <benchmark/benchmark.h>
#include <zstd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/random.h"
#include "compress/codecs/axes.h"
#include "compress/codecs/new_codec.h"
#include "compress/codecs/scalar_reference_testing.h"
#include "compress/cpu/kernels.h"
#include "compress/sample_specs_testing.h"
#include "compress/support.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

const Shape kShape = {100, 32, 32, 64};  // 25 MiB of fp32: ResNet-18's first cut at batch 100

// Returns nearly normal values: sums of twelve uniform numbers. Activations are cut off at zero;
// gradients are small, and their scale differs by channel.
Tensor NormalTensor(bool activations) {
  Tensor x = *Tensor::Allocate(CpuDevice(), DType::kF32, kShape);
  RandomStream random(RandomKey(1, "bench"));
  int64_t i = 0;
  for (float& value : x.floats()) {
    float sum = -6;
    for (int j = 0; j < 12; ++j) sum += random.NextFloat();
    const int channel = static_cast<int>(i++ % 64);
    value = activations ? std::max(sum, 0.0f) : sum * std::ldexp(1e-4f, channel % 5);
  }
  return x;
}

// Returns activations whose scale differs by channel and by blocks of four by four pixels, so that
// neighbours are alike.
Tensor PatchyTensor() {
  Tensor x = NormalTensor(/*activations=*/true);
  uint32_t i = 0;
  for (float& value : x.floats()) {
    const uint32_t channel = i % 64, column = i / 64 % 32 / 4, row = i / (64 * 32) / 4;
    const uint32_t hash = ((row * 8 + column) * 64 + channel) * 0x9E3779B9u;
    value = std::ldexp(value, -static_cast<int>(hash >> 30));
    ++i;
  }
  return x;
}

// Returns rows of `channels` channels, each of which depends on the one before; about 25 MiB.
Tensor RowsOf(int64_t channels) {
  Tensor x = *Tensor::Allocate(CpuDevice(), DType::kF32, {kShape.elements() / channels, channels});
  RandomStream random(RandomKey(1, "rows"));
  float before = 0;
  for (float& value : x.floats()) {
    float sum = -6;
    for (int j = 0; j < 12; ++j) sum += random.NextFloat();
    before = value = 0.9f * before + sum;
  }
  return x;
}

const Tensor& Activations() {
  static const Tensor* const x = new Tensor(NormalTensor(true));
  return *x;
}
const Tensor& Patches() {
  static const Tensor* const x = new Tensor(PatchyTensor());
  return *x;
}
const Tensor& Gradients() {
  static const Tensor* const x = new Tensor(NormalTensor(false));
  return *x;
}

const Tensor& Rows128() {
  static const Tensor* const x = new Tensor(RowsOf(128));
  return *x;
}
const Tensor& Rows768() {
  static const Tensor* const x = new Tensor(RowsOf(768));
  return *x;
}

int num_threads = 1;  // set by main, before the first use of Kernels

CodecKernels* Kernels() {
  static const auto kernels = NewCpuCodecKernels(num_threads);
  return kernels.get();
}

// Returns what a message of one tensor leaves, found once.
const Carry* CarryOf(const CodecSpec& spec, const Tensor& x) {
  static auto* const found = new std::map<const Tensor*, std::shared_ptr<const Carry>>();
  auto& carry = (*found)[&x];
  if (carry == nullptr) {
    const auto codec = std::move(*NewCodec(spec, Kernels()));
    std::vector<uint8_t> payload(codec->MaxPayloadBytes(x.shape(), x.dtype()));
    MessageContext context;
    context.next_carry = &carry;
    if (!codec->Encode(x, context, absl::MakeSpan(payload)).ok()) std::abort();
  }
  return carry.get();
}

// Returns the context of a gradient: about half of the elements, where the activations are not
// zero, have support. Rotated messages are sent in axes that both ends have.
MessageContext ContextOf(const CodecSpec& spec, const Tensor& x) {
  static const SupportMap* const support =
      new SupportMap(*SupportMap::Of(Activations(), Kernels()));
  MessageContext context = {1, spec.needs_support() ? support : nullptr};
  if (spec.rotation == Rotation::kPrincipal) context.carry = CarryOf(spec, x);
  return context;
}

void SetBytes(benchmark::State& state, const Tensor& x, size_t payload_bytes) {
  state.SetBytesProcessed(state.iterations() * x.elements() * 4);
  state.counters["bits_per_element"] = 8.0 * payload_bytes / x.elements();
}

void Memcpy(benchmark::State& state) {
  const Tensor& x = Activations();
  const Tensor y = *Tensor::Allocate(CpuDevice(), DType::kF32, kShape);
  for (auto _ : state) {
    std::memcpy(y.data(), x.data(), x.bytes());
    benchmark::ClobberMemory();
  }
  SetBytes(state, x, x.bytes());
}

// Measures finding axes and writing them as bytes.
void FindAxes(benchmark::State& state, const Tensor& (*tensor)()) {
  const Tensor& x = tensor();
  size_t bytes = 0;
  for (auto _ : state) bytes = Axes::Of(x)->size();
  SetBytes(state, x, bytes);
}

void Encode(benchmark::State& state, const CodecSpec& spec, const Tensor& (*tensor)()) {
  const auto codec = std::move(*NewCodec(spec, Kernels()));
  const Tensor& x = tensor();
  const MessageContext context = ContextOf(spec, x);
  const size_t most = codec->MaxPayloadBytes(x.shape(), DType::kF32);
  auto payload = *Buffer::Allocate(CpuDevice(), most);
  size_t bytes = 0;
  for (auto _ : state) {
    bytes = *codec->Encode(x, context, {static_cast<uint8_t*>(payload->data()), most});
    benchmark::ClobberMemory();
  }
  SetBytes(state, x, bytes);
}

void Decode(benchmark::State& state, const CodecSpec& spec, const Tensor& (*tensor)()) {
  const auto codec = std::move(*NewCodec(spec, Kernels()));
  const Tensor& x = tensor();
  const size_t most = codec->MaxPayloadBytes(x.shape(), DType::kF32);
  auto payload = *Buffer::Allocate(CpuDevice(), most);
  uint8_t* data = static_cast<uint8_t*>(payload->data());
  const MessageContext context = ContextOf(spec, x);
  const size_t bytes = *codec->Encode(x, context, {data, most});
  Tensor y = *Tensor::Allocate(CpuDevice(), DType::kF32, x.shape());
  for (auto _ : state) {
    if (!codec->Decode({data, bytes}, context, &y).ok()) state.SkipWithError("decode failed");
    benchmark::ClobberMemory();
  }
  SetBytes(state, x, bytes);
}

// Measures `lossless: zstd` at another zstd level: one frame of the codec's payload.
void ZstdLevel(benchmark::State& state, const CodecSpec& spec, int level, bool decodes,
               const Tensor& (*tensor)()) {
  const auto codec = std::move(*NewCodec(spec, Kernels()));
  const Tensor& x = tensor();
  const MessageContext context = ContextOf(spec, x);
  std::vector<uint8_t> payload(codec->MaxPayloadBytes(x.shape(), DType::kF32));
  std::vector<uint8_t> frame(ZSTD_compressBound(payload.size()));
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> zstd(ZSTD_createCCtx(), ZSTD_freeCCtx);
  size_t bytes = 0;
  const auto encode = [&] {
    const size_t n = *codec->Encode(x, context, absl::MakeSpan(payload));
    bytes = ZSTD_compressCCtx(zstd.get(), frame.data(), frame.size(), payload.data(), n, level);
  };
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> unzstd(ZSTD_createDCtx(),
                                                                    ZSTD_freeDCtx);
  Tensor y = *Tensor::Allocate(CpuDevice(), DType::kF32, x.shape());
  const auto decode = [&] {
    const size_t n =
        ZSTD_decompressDCtx(unzstd.get(), payload.data(), payload.size(), frame.data(), bytes);
    if (ZSTD_isError(n) || !codec->Decode({payload.data(), n}, context, &y).ok()) {
      state.SkipWithError("decode failed");
    }
  };
  encode();
  for (auto _ : state) {
    if (decodes) {
      decode();
    } else {
      encode();
    }
    benchmark::ClobberMemory();
  }
  SetBytes(state, x, bytes);
}

void ScalarUniform(benchmark::State& state, bool decodes) {
  const Tensor& x = Gradients();
  const Tensor y = *Tensor::Allocate(CpuDevice(), DType::kF32, kShape);
  std::vector<uint8_t> codes(x.elements());
  const auto grid = ScalarUniformEncode(x.floats(), codes.data());
  for (auto _ : state) {
    if (decodes) {
      ScalarUniformDecode(codes.data(), grid, y.floats());
    } else {
      ScalarUniformEncode(x.floats(), codes.data());
    }
    benchmark::ClobberMemory();
  }
  SetBytes(state, x, codes.size());
}

void ScalarTopK(benchmark::State& state, bool decodes) {
  const Tensor& x = Gradients();
  const Tensor y = *Tensor::Allocate(CpuDevice(), DType::kF32, kShape);
  const size_t n = x.elements() / kShape[0];
  ScalarEntries entries;
  ScalarTopKEncode(x.floats(), n, n / 10, &entries);
  for (auto _ : state) {
    if (decodes) {
      ScalarTopKDecode(entries, y.floats());
    } else {
      ScalarTopKEncode(x.floats(), n, n / 10, &entries);
    }
    benchmark::ClobberMemory();
  }
  SetBytes(state, x, 8 * entries.values.size());
}

void RegisterReferences() {
  for (const bool decodes : {false, true}) {
    const std::string tail = decodes ? "/decode/gradients" : "/encode/gradients";
    benchmark::RegisterBenchmark(("scalar_uniform8" + tail).c_str(), ScalarUniform, decodes);
    benchmark::RegisterBenchmark(("scalar_topk10_sample" + tail).c_str(), ScalarTopK, decodes);
  }
}

struct Input {
  const char* name;
  const Tensor& (*tensor)();
};

std::set<CodecKind>* Registered() {
  static auto* const kinds = new std::set<CodecKind>;
  return kinds;
}

void Register(const std::string& name, const CodecSpec& spec,
              const std::vector<Input>& inputs = {{"activations", Activations},
                                                  {"gradients", Gradients}}) {
  Registered()->insert(spec.kind);
  for (const Input& input : inputs) {
    auto* encode = benchmark::RegisterBenchmark((name + "/encode/" + input.name).c_str(), Encode,
                                                spec, input.tensor);
    auto* decode = benchmark::RegisterBenchmark((name + "/decode/" + input.name).c_str(), Decode,
                                                spec, input.tensor);
    if (num_threads == 1) continue;
    encode->UseRealTime();  // the other threads' time is no CPU time of this one
    decode->UseRealTime();
  }
}

void RegisterEightBits() {
  CodecSpec spec;
  spec.kind = CodecKind::kFp8;
  Register("fp8_e4m3", spec);
  spec.format = Fp8Format::kE5M2;
  Register("fp8_e5m2", spec);
  spec = CodecSpec();
  spec.kind = CodecKind::kBlockwise8;
  spec.block = 4096;
  Register("blockwise8", spec);
}

void RegisterRotations() {
  CodecSpec spec;
  spec.kind = CodecKind::kUniform;
  spec.bits = 4;
  spec.rotation = Rotation::kHadamard;
  for (uint32_t block : {64, 1024, 32768}) {
    spec.rotation_block = block;
    Register("uniform4_hadamard" + std::to_string(block), spec);
  }
}

void RegisterLossless() {
  for (const Lossless lossless : {Lossless::kZstd, Lossless::kEntropy}) {
    CodecSpec spec;
    spec.lossless = lossless;
    const std::string behind = absl::StrCat("_", Name(lossless));
    Register("none" + behind, spec);
    spec.kind = CodecKind::kUniform;
    for (uint32_t bits : {2, 4, 8}) {
      spec.bits = bits;
      Register("uniform" + std::to_string(bits) + behind, spec);
    }
    spec.kind = CodecKind::kTopK;
    spec.ratio = 0.1;
    Register("topk10" + behind, spec);
  }
}

void RegisterZstdLevels(const std::string& name, const CodecSpec& spec) {
  for (const int level : {-5, -3, -1, 1, 2, 3}) {
    for (const bool decodes : {false, true}) {
      for (const Input& input :
           {Input{"activations", Activations}, Input{"gradients", Gradients}}) {
        const std::string of =
            absl::StrCat(name, "_zstd", level, decodes ? "/decode/" : "/encode/", input.name);
        benchmark::RegisterBenchmark(of.c_str(), ZstdLevel, spec, level, decodes, input.tensor);
      }
    }
  }
}

void RegisterEcsq() {
  CodecSpec spec;
  spec.kind = CodecKind::kEcsq;
  Register("ecsq", spec);
  RegisterZstdLevels("ecsq1", spec);
  spec.lossless = Lossless::kEntropy;
  for (const double step : {0.5, 1.0, 2.0}) {
    spec.step = step;
    Register(absl::StrCat("ecsq", step, "_entropy"), spec,
             {{"activations", Activations}, {"gradients", Gradients}, {"patches", Patches}});
  }
  spec.step = 1;
  const std::vector<Input> rows = {{"rows128", Rows128}, {"rows768", Rows768}};
  Register("ecsq1_entropy", spec, rows);
  spec.rotation = Rotation::kPrincipal;
  spec.rotation_every = 100;
  Register("ecsq1_principal_entropy", spec, rows);
  for (const Input& input : rows) {
    benchmark::RegisterBenchmark(absl::StrCat("axes/", input.name).c_str(), FindAxes, input.tensor);
  }
  spec.rotation = Rotation::kNone;
  spec.rounding = Rounding::kDither;
  Register("ecsq1_dither_entropy", spec);
}

void RegisterChosenEntries() {
  CodecSpec spec;
  spec.kind = CodecKind::kTopK;
  spec.ratio = 0.1;
  spec.values = Values::kUniform;
  spec.bits = 4;
  Register("topk10_uniform4", spec);
  spec.values = Values::kMeans;
  spec.bits = 2;
  Register("topk10_means2", spec);
  spec.ratio = 1.0 / 64;
  spec.scope = Scope::kGroup;
  spec.group = 4096;
  Register("topk64_of_4096_means2", spec);
  spec = CodecSpec();
  spec.kind = CodecKind::kTopK;
  spec.ratio = 0.1;
  spec.support = Support::kReceivedNonzero;
  Register("topk10_supported", spec);
  spec.support = Support::kAll;
  spec.kind = CodecKind::kRandomK;
  Register("randomk10", spec);
  spec.unbiased = true;
  spec.scope = Scope::kSample;
  Register("randomk10_sample_unbiased", spec);
  spec = CodecSpec();
  spec.kind = CodecKind::kThreshold;
  spec.threshold = 1.5;
  spec.relative_to = RelativeTo::kRms;
  Register("threshold_rms", spec);
  spec = CodecSpec();
  spec.kind = CodecKind::kTopK;
  spec.indices = Indices::kShared;
  Register("topk_shared", spec);
  spec = CodecSpec();
  spec.kind = CodecKind::kUniform;
  spec.bits = 4;
  spec.support = Support::kReceivedNonzero;
  Register("uniform4_supported", spec);
}

// The samples of codecs that are timed nowhere else.
void RegisterOthers() {
  for (const CodecRow& row : CodecRows()) {
    if (Registered()->count(row.value) > 0) continue;
    for (const CodecSpec& spec : SampleSpecs(row)) Register(spec.ToString(), spec);
  }
}

void RegisterAll() {
  benchmark::RegisterBenchmark("memcpy", Memcpy);
  CodecSpec spec;
  for (CodecKind kind : {CodecKind::kNone, CodecKind::kFp16, CodecKind::kBf16}) {
    spec.kind = kind;
    Register(Name(kind), spec);
  }
  spec.kind = CodecKind::kUniform;
  for (uint32_t bits : {2, 3, 4, 8}) {
    spec.bits = bits;
    Register("uniform" + std::to_string(bits), spec);
  }
  spec.bits = 4;
  spec.rounding = Rounding::kStochastic;
  Register("uniform4_stochastic", spec);
  spec.rounding = Rounding::kNearest;
  spec.scope = Scope::kToken;
  Register("uniform4_token", spec);
  spec.scope = Scope::kChannel;
  spec.range = Range::kFixedPoint;
  Register("uniform4_fixed_channel", spec);
  spec = CodecSpec();
  spec.kind = CodecKind::kTopK;
  for (double ratio : {0.01, 0.1, 0.3}) {
    spec.ratio = ratio;
    Register("topk" + std::to_string(static_cast<int>(std::round(100 * ratio))), spec);
  }
  spec.ratio = 0.1;
  for (Scope scope : {Scope::kSample, Scope::kToken, Scope::kChannel}) {
    spec.scope = scope;
    Register(std::string("topk10_") + Name(scope), spec);
  }
  spec.scope = Scope::kSample;
  spec.values = Values::kF16;
  Register("topk10_sample_fp16", spec);
  RegisterChosenEntries();
  RegisterEightBits();
  RegisterRotations();
  RegisterLossless();
  RegisterEcsq();
  RegisterOthers();
  RegisterReferences();
}

// Reads the arguments that the library left: --threads=N, or none. False for any other.
bool ReadThreads(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    absl::string_view value = argv[i];
    if (!absl::ConsumePrefix(&value, "--threads=") || !absl::SimpleAtoi(value, &num_threads) ||
        num_threads < 1) {
      std::fprintf(stderr, "argument %s, want --threads=N with N of at least 1\n", argv[i]);
      return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (!thinwire::ReadThreads(argc, argv)) return 1;
  thinwire::RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
