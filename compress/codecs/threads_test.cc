// Tests that kernels give the same bytes and bits for any number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "absl/algorithm/container.h"
#include "compress/codecs/new_codec.h"
#include "compress/codecs/round_trip_testing.h"
#include "compress/sample_specs_testing.h"

namespace thinwire {
namespace {

constexpr int kThreadCounts[] = {2, 3};

// Shapes with odd axes. Of the large ones (1.03 and 2.1 MiB of fp32) the first has more scopes of
// each kind than threads; a sample of the second is above 1 MiB by itself, and three threads share
// each.
const Shape kShapes[] = {{3, 7, 5, 43}, {5, 97, 13, 43}, {2, 81, 79, 43}};

// Returns nearly normal values with an outlier.
Tensor SmoothTensor(const Shape& shape) {
  std::vector<float> values = RandomValues(shape.elements(), 5);
  values[values.size() / 2] = 40;
  return TensorOf(shape, values);
}

// Returns few different values, so that many equal each threshold; half of them are zeros of both
// signs.
std::vector<float> CoarseValues(int64_t n) {
  std::vector<float> values = RandomValues(n, 6, /*relu=*/true);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = std::nearbyint(values[i] * 4) / 4;
    if (i % 3 == 0) values[i] = -values[i];
  }
  return values;
}

const std::vector<Tensor>& TensorsOf(const Shape& shape) {
  static std::map<int64_t, std::vector<Tensor>> made;  // by elements
  std::vector<Tensor>& tensors = made[shape.elements()];
  if (tensors.empty()) {
    tensors.push_back(SmoothTensor(shape));
    tensors.push_back(BFloatTensorOf(shape, CoarseValues(shape.elements())));
  }
  return tensors;
}

struct Message {
  std::vector<uint8_t> payload;
  Tensor decoded;
};

// Encodes and decodes `x`.
Message Travel(const CodecSpec& spec, const Tensor& x, CodecKernels* kernels) {
  const auto codec = std::move(*NewCodec(spec, kernels));
  const TestContext context(spec, x.elements(), /*random_key=*/9, nullptr);
  Message m;
  m.payload.resize(codec->MaxPayloadBytes(x.shape(), x.dtype()));
  const auto bytes = codec->Encode(x, context.get(), absl::MakeSpan(m.payload));
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  m.payload.resize(bytes.value_or(0));
  m.decoded = *Tensor::Allocate(CpuDevice(), x.dtype(), x.shape());
  std::memset(m.decoded.data(), 0x3F, m.decoded.bytes());
  const absl::Status status = codec->Decode(m.payload, context.get(), &m.decoded);
  EXPECT_TRUE(status.ok()) << status;
  return m;
}

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

void AppendUniform(std::vector<CodecSpec>* specs) {
  CodecSpec spec;
  spec.kind = CodecKind::kUniform;
  for (Scope scope :
       {Scope::kTensor, Scope::kSample, Scope::kChannel, Scope::kToken, Scope::kGroup}) {
    spec.scope = scope;
    spec.group = scope == Scope::kGroup ? 5000 : 0;
    for (Range range : {Range::kMinMax, Range::kMaxAbs, Range::kFixedPoint}) {
      spec.range = range;
      spec.rounding = range == Range::kMaxAbs ? Rounding::kStochastic : Rounding::kNearest;
      spec.zero = range == Range::kMinMax ? Zero::kOnGrid : Zero::kFree;
      spec.bits = 3 + static_cast<uint32_t>(range);
      specs->push_back(spec);
    }
  }
  spec = CodecSpec();
  spec.kind = CodecKind::kUniform;
  spec.rotation = Rotation::kHadamard;
  for (uint32_t block : {16, 32768}) {
    spec.rotation_block = block;
    spec.rounding = Rounding::kStochastic;
    specs->push_back(spec);
  }
}

void AppendSparse(const CodecSpec& values, std::vector<CodecSpec>* specs) {
  CodecSpec spec = values;
  for (Scope scope : {Scope::kTensor, Scope::kSample, Scope::kChannel, Scope::kToken}) {
    spec.scope = scope;
    spec.kind = CodecKind::kTopK;
    for (double ratio : {0.02, 0.3}) {
      spec.ratio = ratio;
      specs->push_back(spec);
    }
    spec.kind = CodecKind::kRandomK;
    spec.unbiased = true;
    specs->push_back(spec);
    spec.unbiased = false;
  }
  spec = values;
  spec.kind = CodecKind::kThreshold;
  spec.threshold = 0.4;
  for (RelativeTo to : {RelativeTo::kAbsolute, RelativeTo::kRms, RelativeTo::kMax}) {
    spec.relative_to = to;
    specs->push_back(spec);
  }
}

// Returns every way to send kept values, once with and once without a support, and every index
// coding.
void AppendEverySparse(std::vector<CodecSpec>* specs) {
  CodecSpec spec;
  AppendSparse(spec, specs);
  spec.values = Values::kF16;
  spec.support = Support::kReceivedNonzero;
  AppendSparse(spec, specs);
  spec.values = Values::kBF16;
  spec.support = Support::kAll;
  AppendSparse(spec, specs);
  spec.values = Values::kUniform;
  spec.group = 7000;
  AppendSparse(spec, specs);
  for (uint32_t group : {7000, 400000}) {
    spec = CodecSpec();
    spec.kind = CodecKind::kTopK;
    spec.ratio = 0.4;
    spec.scope = Scope::kGroup;
    spec.group = group;
    specs->push_back(spec);
    spec.values = Values::kMeans;
    spec.bits = 2;
    specs->push_back(spec);
  }
  spec = CodecSpec();
  spec.kind = CodecKind::kTopK;
  spec.indices = Indices::kShared;
  specs->push_back(spec);
  spec.indices = Indices::kOwn;
  spec.ratio = 0.9;  // most entries: a bitmap, and more than 1 MiB of them
  spec.pad = Pad::kExactK;
  for (Scope scope : {Scope::kTensor, Scope::kSample, Scope::kChannel}) {
    spec.scope = scope;
    specs->push_back(spec);
  }
  spec = CodecSpec();
  spec.kind = CodecKind::kTopK;
  spec.k = 3;  // few entries: packed
  specs->push_back(spec);
}

std::vector<CodecSpec> EverySpec() {
  std::vector<CodecSpec> specs;
  CodecSpec spec;
  for (Support support : {Support::kAll, Support::kReceivedNonzero}) {
    spec.support = support;
    for (CodecKind kind :
         {CodecKind::kNone, CodecKind::kFp16, CodecKind::kBf16, CodecKind::kUniform}) {
      spec.kind = kind;
      specs.push_back(spec);
    }
  }
  AppendUniform(&specs);
  AppendEverySparse(&specs);
  spec = CodecSpec();
  spec.kind = CodecKind::kFp8;
  for (Fp8Format format : {Fp8Format::kE4M3, Fp8Format::kE5M2}) {
    spec.format = format;
    specs.push_back(spec);
  }
  spec = CodecSpec();
  spec.kind = CodecKind::kBlockwise8;
  for (uint32_t block : {7, 4096, 300000}) {
    spec.block = block;
    specs.push_back(spec);
  }
  spec = CodecSpec();
  spec.kind = CodecKind::kLowRank;
  spec.rank = 2;
  specs.push_back(spec);
  spec = CodecSpec();
  spec.lossless = Lossless::kZstd;
  specs.push_back(spec);
  for (const CodecSpec& sample : SampleSpecsOfAll()) {
    if (!absl::c_linear_search(specs, sample)) specs.push_back(sample);
  }
  return specs;
}

class ThreadsTest : public testing::TestWithParam<CodecSpec> {};

TEST_P(ThreadsTest, PayloadsAndDecodedBitsAreThoseOfOneThread) {
  for (const Shape& shape : kShapes) {
    for (const Tensor& x : TensorsOf(shape)) {
      const Message expected = Travel(GetParam(), x, CpuCodecKernels());
      for (int threads : kThreadCounts) {
        const auto kernels = NewCpuCodecKernels(threads);
        const Message got = Travel(GetParam(), x, kernels.get());
        EXPECT_TRUE(got.payload == expected.payload)
            << threads << " threads, " << shape.ToString() << " " << Name(x.dtype());
        EXPECT_TRUE(SameBits(got.decoded, expected.decoded))
            << threads << " threads, " << shape.ToString() << " " << Name(x.dtype());
      }
    }
  }
}

std::string NameOf(const testing::TestParamInfo<CodecSpec>& info) {
  std::string name = std::to_string(info.index) + "_" + info.param.ToString();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(EveryCodec, ThreadsTest, testing::ValuesIn(EverySpec()), NameOf);

TEST(KernelThreadsTest, SumsAndNonzerosAreThoseOfOneThread) {
  const Shape shape = kShapes[2];
  const std::vector<Tensor>& tensors = TensorsOf(shape);
  const TensorView x = tensors[0].view(), y = tensors[1].view();
  Tensor sum = *Tensor::Allocate(CpuDevice(), DType::kF32, shape);
  Tensor sum_of_threads = *Tensor::Allocate(CpuDevice(), DType::kF32, shape);
  CodecKernels::Sums sums, sums_of_threads;
  ASSERT_TRUE(CpuCodecKernels()->Compare(x, y, &sums).ok());
  ASSERT_TRUE(CpuCodecKernels()->Combine(0.5f, x, -3, y, sum.view()).ok());
  for (int threads : kThreadCounts) {
    const auto kernels = NewCpuCodecKernels(threads);
    ASSERT_TRUE(kernels->Combine(0.5f, x, -3, y, sum_of_threads.view()).ok());
    EXPECT_TRUE(SameBits(sum, sum_of_threads));
    ASSERT_TRUE(kernels->Compare(x, y, &sums_of_threads).ok());
    EXPECT_EQ(std::memcmp(&sums, &sums_of_threads, sizeof(sums)), 0);
  }
}

TEST(KernelThreadsTest, TheFirstBadValueIsNamed) {
  const Shape shape = kShapes[2];
  std::vector<float> values = RandomValues(shape.elements(), 5);
  values[400000] = std::numeric_limits<float>::infinity();
  values[500000] = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = TensorOf(shape, values);
  const auto kernels = NewCpuCodecKernels(3);
  for (CodecSpec spec : EverySpec()) {
    const TestContext context(spec, x.elements(), 1, nullptr);
    const auto codec = std::move(*NewCodec(spec, kernels.get()));
    std::vector<uint8_t> payload(codec->MaxPayloadBytes(x.shape(), x.dtype()));
    const auto bytes = codec->Encode(x, context.get(), absl::MakeSpan(payload));
    const auto expected = CodecOf(spec)->Encode(x, context.get(), absl::MakeSpan(payload)).status();
    EXPECT_EQ(bytes.status(), expected) << spec.ToString();
  }
}

// Tests that an error in one part reaches the caller.
TEST(KernelThreadsTest, ABadCodeInAnyPartIsRefused) {
  const Tensor x = SmoothTensor(kShapes[2]);
  const auto kernels = NewCpuCodecKernels(3);
  const size_t n = x.elements();
  const struct {
    CodecKind kind;
    size_t header_bytes;
    uint8_t bad_code;
  } cases[] = {{CodecKind::kFp8, 2, 0x7F}, {CodecKind::kUniform, 4, 0xFF}};
  for (const auto& c : cases) {
    CodecSpec spec;
    spec.kind = c.kind;
    spec.range = c.kind == CodecKind::kUniform ? Range::kMaxAbs : Range::kMinMax;
    const auto codec = std::move(*NewCodec(spec, kernels.get()));
    const Message m = Travel(spec, x, kernels.get());
    for (size_t at : {size_t{0}, n / 2, n - 1}) {
      std::vector<uint8_t> payload = m.payload;
      payload[c.header_bytes + at] = c.bad_code;
      Tensor y = *Tensor::Allocate(CpuDevice(), x.dtype(), x.shape());
      EXPECT_EQ(codec->Decode(payload, MessageContext(), &y).code(),
                absl::StatusCode::kInvalidArgument)
          << spec.ToString() << " at " << at;
    }
  }
}

}  // namespace
}  // namespace thinwire
