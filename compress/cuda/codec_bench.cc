// Benchmark of the codecs on a GPU, beside the card's own copies in the same run. Prints a line of
// JSON for each codec, tensor and direction, after one for the copies.
//
// bytes_per_second counts the bytes of the fp32 tensor (encode: read, decode: written), from device
// memory to device memory. of_copy is that number over the one of a cudaMemcpyAsync of the same
// tensor within the device. Each byte counts once there too, though a copy reads and writes it. So
// a codec that reads the tensor once and writes nothing could reach 2.
//
// `by` says how device time was found. "events" is around functions that only launch kernels.
// "events less copy" is around the kernel's whole entry, less the time of copying the payload
// across PCIe. entry_bytes_per_second is for the whole entry, PCIe and waiting included, in the
// host's time.
#include <cuda_runtime.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/median.h"
#include "base/random.h"
#include "base/status.h"
#include "compress/codecs/new_codec.h"
#include "compress/cuda/codec_bench_calls.h"
#include "compress/cuda/kernels.h"
#include "tensor/cpu/device.h"
#include "tensor/cuda/device.h"
#include "tensor/cuda/error.h"

namespace thinwire {
namespace {

struct BenchOptions {
  int device = 0;
  int64_t mib = 512;
  int repeats = 20, entry_repeats = 5, warmup = 3;
  std::string only;
};

using Call = std::function<absl::Status()>;

absl::Status Cuda(cudaError_t code, const char* call) {
  return code == cudaSuccess ? absl::OkStatus() : ToStatus(CudaError(code, call));
}

// Stopwatch for the time between two events of the calling thread's stream.
class Stopwatch {
 public:
  static absl::StatusOr<std::unique_ptr<Stopwatch>> New(CudaDevice* device) {
    std::unique_ptr<Stopwatch> made(new Stopwatch);
    RETURN_IF_ERROR(ToStatus(device->Stream(&made->stream_)));
    RETURN_IF_ERROR(Cuda(cudaEventCreate(&made->start_), "cudaEventCreate"));
    RETURN_IF_ERROR(Cuda(cudaEventCreate(&made->stop_), "cudaEventCreate"));
    return made;
  }
  ~Stopwatch() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }

  cudaStream_t stream() const { return stream_; }

  // Returns seconds: the median of `repeats` calls after `warmup` calls.
  absl::StatusOr<double> Time(const BenchOptions& options, int repeats, const Call& call) {
    std::vector<double> seconds;
    for (int i = 0; i < options.warmup + repeats; ++i) {
      RETURN_IF_ERROR(Cuda(cudaEventRecord(start_, stream_), "cudaEventRecord"));
      RETURN_IF_ERROR(call());
      RETURN_IF_ERROR(Cuda(cudaEventRecord(stop_, stream_), "cudaEventRecord"));
      RETURN_IF_ERROR(Cuda(cudaEventSynchronize(stop_), "cudaEventSynchronize"));
      float milliseconds = 0;
      RETURN_IF_ERROR(
          Cuda(cudaEventElapsedTime(&milliseconds, start_, stop_), "cudaEventElapsedTime"));
      if (i >= options.warmup) seconds.push_back(static_cast<double>(milliseconds) / 1e3);
    }
    return std::max(UpperMedian(seconds), 1e-9);
  }

 private:
  Stopwatch() = default;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

// Returns seconds by the host's clock, for calls that have finished when they return.
absl::StatusOr<double> TimeOnHost(int repeats, const Call& call) {
  std::vector<double> seconds;
  for (int i = 0; i < 1 + repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    RETURN_IF_ERROR(call());
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    if (i > 0) seconds.push_back(passed.count());
  }
  return std::max(UpperMedian(seconds), 1e-9);
}

// Returns the factor of an element in patches. It differs by channel and by blocks of four by four
// positions, so that codes tell how large their neighbours are. `i` indexes [batch, 32, 32, 64].
float ScaleOfPatch(uint32_t i) {
  const uint32_t patch = (i >> 13 & 0x1F) << 9 | (i >> 8 & 7) << 6 | (i & 63);
  return 1.0f / static_cast<float>(1u << (patch * 0x9E3779B9u >> 29));
}

// Returns nearly normal values, each a sum of four uniform numbers; for relu half of them are zero.
absl::StatusOr<Tensor> RandomOnDevice(CudaDevice* device, const Shape& shape,
                                      const std::string& name) {
  ASSIGN_OR_RETURN(const Tensor host, Tensor::Allocate(CpuDevice(), DType::kF32, shape));
  uint64_t state = 1;
  uint32_t i = 0;
  for (float& value : host.floats()) {
    state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX
    uint64_t bits = state ^ (state >> 29);
    bits *= 0xBF58476D1CE4E5B9u;
    float sum = -2;
    for (int k = 0; k < 4; ++k) sum += static_cast<float>((bits >> (16 * k)) & 0xFFFF) * 0x1p-16f;
    sum += static_cast<float>(state >> 40) * 0x1p-40f;  // so that few values are equal
    value = name == "relu" ? std::max(sum, 0.0f) : sum;
    if (name == "patches") value *= ScaleOfPatch(i++);
  }
  ASSIGN_OR_RETURN(Tensor x, Tensor::Allocate(device, DType::kF32, shape));
  RETURN_IF_ERROR(ToStatus(device->CopyFromHost(x.data(), host.data(), host.bytes())));
  return x;
}

CodecSpec Sparse(CodecKind kind, double ratio, Scope scope) {
  CodecSpec spec = DefaultSpec(kind);
  spec.ratio = ratio;
  spec.scope = scope;
  return spec;
}

std::vector<CodecSpec> SpecsToTime() {
  std::vector<CodecSpec> specs = {DefaultSpec(CodecKind::kBf16), DefaultSpec(CodecKind::kFp8),
                                  DefaultSpec(CodecKind::kBlockwise8)};
  for (Scope scope : {Scope::kTensor, Scope::kSample}) {
    for (uint32_t bits : {2, 4, 8}) {
      specs.push_back(DefaultSpec(CodecKind::kUniform));
      specs.back().bits = bits;
      specs.back().scope = scope;
    }
  }
  for (Scope scope : {Scope::kTensor, Scope::kSample}) {
    for (double ratio : {0.01, 0.1, 0.3}) {
      specs.push_back(Sparse(CodecKind::kTopK, ratio, scope));
    }
  }
  specs.push_back(DefaultSpec(CodecKind::kThreshold));
  specs.back().threshold = 1.5;
  specs.back().relative_to = RelativeTo::kRms;
  specs.push_back(Sparse(CodecKind::kRandomK, 0.1, Scope::kSample));
  return specs;
}

// Returns codecs with the entropy coder, and one of them without it.
std::vector<CodecSpec> SpecsToCode() {
  std::vector<CodecSpec> specs = {DefaultSpec(CodecKind::kEcsq), DefaultSpec(CodecKind::kEcsq),
                                  DefaultSpec(CodecKind::kUniform)};
  for (CodecSpec& spec : specs) spec.lossless = Lossless::kEntropy;
  specs[0].lossless = Lossless::kNone;
  return specs;
}

// State of the benchmark: all that is timed works on these tensors.
class Bench {
 public:
  Bench(const BenchOptions& options, CudaDevice* device, std::unique_ptr<Stopwatch> stopwatch)
      : options_(options),
        device_(device),
        kernels_(std::make_unique<CudaKernels>(device)),
        stopwatch_(std::move(stopwatch)) {}

  absl::Status Run() {
    for (const std::string name : {"dense", "relu", "patches"}) {
      // Coding by neighbours takes long, so an eighth of the size is used.
      const int64_t mib = name == "patches" ? std::max<int64_t>(1, options_.mib / 8) : options_.mib;
      const Shape shape = {4 * mib, 32, 32, 64};  // 256 KiB a sample
      ASSIGN_OR_RETURN(y_, Tensor::Allocate(device_, DType::kF32, shape));
      ASSIGN_OR_RETURN(x_, RandomOnDevice(device_, shape, name));
      tensor_name_ = name;
      if (tensor_name_ == "dense") RETURN_IF_ERROR(PrintCopies());
      // Only the entropy coder asks which values are near each other.
      if (tensor_name_ != "patches") RETURN_IF_ERROR(TimeCodecs(SpecsToTime()));
      RETURN_IF_ERROR(TimeCodecs(SpecsToCode()));
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<double> TimeCopy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    return stopwatch_->Time(options_, options_.repeats, [&] {
      return Cuda(cudaMemcpyAsync(to, from, bytes, kind, stopwatch_->stream()), "cudaMemcpyAsync");
    });
  }

  absl::Status PrintCopies() {
    const auto bytes = static_cast<double>(x_.bytes());
    ASSIGN_OR_RETURN(const double copy,
                     TimeCopy(y_.data(), x_.data(), x_.bytes(), cudaMemcpyDeviceToDevice));
    ASSIGN_OR_RETURN(const auto host, Buffer::Allocate(device_->host(), x_.bytes()));
    ASSIGN_OR_RETURN(const double down,
                     TimeCopy(host->data(), x_.data(), x_.bytes(), cudaMemcpyDeviceToHost));
    ASSIGN_OR_RETURN(const double up,
                     TimeCopy(y_.data(), host->data(), x_.bytes(), cudaMemcpyHostToDevice));
    Print({{"yardstick", "copy"},
           {"tensor_bytes", x_.bytes()},
           {"seconds", copy},
           {"bytes_per_second", bytes / copy},
           {"read_and_written_per_second", 2 * bytes / copy},
           {"to_host_bytes_per_second", bytes / down},
           {"from_host_bytes_per_second", bytes / up}});
    return absl::OkStatus();
  }

  absl::Status TimeCodecs(const std::vector<CodecSpec>& specs) {
    for (const CodecSpec& spec : specs) {
      if (spec.ToString().find(options_.only) == std::string::npos) continue;
      RETURN_IF_ERROR(TimeCodec(spec));
    }
    return absl::OkStatus();
  }

  absl::Status TimeCodec(const CodecSpec& spec) {
    ASSIGN_OR_RETURN(const auto codec, NewCodec(spec, kernels_.get()));
    const size_t most = codec->MaxPayloadBytes(x_.shape(), DType::kF32);
    ASSIGN_OR_RETURN(const auto payload, Buffer::Allocate(device_->host(), most));
    auto* const data = static_cast<uint8_t*>(payload->data());
    size_t bytes = 0;
    const Call encode = [&] {
      ASSIGN_OR_RETURN(bytes, codec->Encode(x_, {1}, {data, most}));
      return absl::OkStatus();
    };
    const Call decode = [&] { return codec->Decode({data, bytes}, {}, &y_); };
    RETURN_IF_ERROR(encode());
    DeviceCalls calls;
    RETURN_IF_ERROR(ToStatus(MakeDeviceCalls(device_, spec, x_.view(), y_.view(), &calls)));
    RETURN_IF_ERROR(TimeDirection(spec, "encode", calls.encode, encode, data, bytes));
    return TimeDirection(spec, "decode", calls.decode, decode, data, bytes);
  }

  // Times one direction. `payload` is page-locked memory to which `entry` writes `bytes`, or from
  // which it reads them.
  absl::Status TimeDirection(const CodecSpec& spec, const char* direction,
                             const std::function<Error()>& launches, const Call& entry,
                             uint8_t* payload, size_t bytes) {
    ASSIGN_OR_RETURN(const double copy,
                     TimeCopy(y_.data(), x_.data(), x_.bytes(), cudaMemcpyDeviceToDevice));
    double seconds = 0;
    if (launches != nullptr) {
      const Call call = [&] { return ToStatus(launches()); };
      ASSIGN_OR_RETURN(seconds, stopwatch_->Time(options_, options_.repeats, call));
    } else {
      // What one warp of the entropy coder does takes long.
      const int repeats =
          spec.lossless == Lossless::kNone ? options_.repeats : options_.entry_repeats;
      ASSIGN_OR_RETURN(const double all, stopwatch_->Time(options_, repeats, entry));
      ASSIGN_OR_RETURN(const double across, TimePayloadCopy(direction, payload, bytes));
      seconds = std::max(all - across, 1e-9);
    }
    // The entry runs again, so that an encoder's payload is whole after the copies above.
    ASSIGN_OR_RETURN(const double entry_seconds, TimeOnHost(options_.entry_repeats, entry));
    const auto tensor_bytes = static_cast<double>(x_.bytes());
    Print({{"codec", spec.ToString()},
           {"tensor", tensor_name_},
           {"direction", direction},
           {"bits_per_element", 8.0 * static_cast<double>(bytes) / (tensor_bytes / 4)},
           {"by", launches != nullptr ? "events" : "events less copy"},
           {"seconds", seconds},
           {"bytes_per_second", tensor_bytes / seconds},
           {"of_copy", copy / seconds},
           {"entry_seconds", entry_seconds},
           {"entry_bytes_per_second", tensor_bytes / entry_seconds}});
    return absl::OkStatus();
  }

  // Copies as many bytes as the payload has, with other contents.
  absl::StatusOr<double> TimePayloadCopy(const std::string& direction, uint8_t* payload,
                                         size_t bytes) {
    const size_t copied = std::min(bytes, y_.bytes());
    return direction == "encode" ? TimeCopy(payload, x_.data(), copied, cudaMemcpyDeviceToHost)
                                 : TimeCopy(y_.data(), payload, copied, cudaMemcpyHostToDevice);
  }

  static void Print(const nlohmann::ordered_json& line) {
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
  }

  const BenchOptions options_;
  CudaDevice* const device_;
  const std::unique_ptr<CodecKernels> kernels_;
  const std::unique_ptr<Stopwatch> stopwatch_;
  Tensor x_, y_;
  std::string tensor_name_;
};

absl::Status Run(const BenchOptions& options) {
  CudaDevice* device = nullptr;
  RETURN_IF_ERROR(ToStatus(NewCudaDevice(options.device, &device)));
  ASSIGN_OR_RETURN(auto stopwatch, Stopwatch::New(device));
  return Bench(options, device, std::move(stopwatch)).Run();
}

int Main(int argc, char** argv) {
  BenchOptions options;
  CLI::App app("Speed of the codecs on a GPU, beside its own copies");
  app.add_option("--device", options.device, "index of the GPU");
  app.add_option("--mib", options.mib, "of the tensor, in fp32")->check(CLI::PositiveNumber);
  app.add_option("--repeats", options.repeats, "of device time")->check(CLI::PositiveNumber);
  app.add_option("--entry_repeats", options.entry_repeats, "of whole entries")
      ->check(CLI::PositiveNumber);
  app.add_option("--warmup", options.warmup, "calls before");
  app.add_option("--only", options.only, "codecs whose name has this in it");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "codec_bench: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) { return thinwire::Main(argc, argv); }
