#include "stage_server/control_calls_testing.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <utility>

#include "absl/status/statusor.h"
#include "config/experiment.h"

namespace thinwire {
namespace {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;

constexpr char kImages[] = R"(
name: images
model: {name: resnet8, width: 2}
data: {name: digits, batch_size: 4, limit: 8, test_limit: 4}
pipeline: {cuts: [layer1], stages: 1, threads: 1, deadline_seconds: 0.01}
compression:
  activations: {codec: uniform, bits: 4, feedback: aq_sgd}
  gradients: {codec: topk, ratio: 0.3, feedback: ef}
optimizer: {lr: 0.1, momentum: 0.9}
metrics: {error_every: 1}
capture: {steps: [1]}
epochs: 3
device: cpu
)";
constexpr char kText[] = R"(
name: text
model: {name: gpt2, width: 4, layers: 2, heads: 1}
data: {name: text, tokens: bytes, batch_size: 2, context: 8, windows: 4, test_limit: 2}
pipeline: {cuts: [h.0], stages: 1, threads: 1, deadline_seconds: 0.01}
optimizer: {name: adamw, lr: 0.01, clip_norm: 1}
epochs: 3
device: cpu
)";

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

Experiment Resolved(const char* text, const std::vector<std::string>& overrides) {
  const absl::StatusOr<Experiment> experiment = ParseExperiment(text, "fuzz", overrides);
  if (!experiment.ok()) Fail(experiment.status().ToString());
  return *experiment;
}

std::string WithText(const std::string& folder) {
  const std::string path = folder + "/text";
  std::ofstream file(path);
  for (int i = 0; i < 40; ++i) file << "the text of line " << i << "\n";
  if (!file.flush()) Fail(path + ": cannot write");
  return "data.file=" + path;
}

struct Configuration {
  Experiment experiment;
  uint32_t stage;
  uint64_t train_samples, test_samples;
};

const std::vector<Configuration>& Configurations() {
  static const auto* const all = [] {
    const std::string text = WithText(DataFolder());
    return new std::vector<Configuration>{
        {Resolved(kImages, {}), 0, 8, 4},
        {Resolved(kImages, {"pipeline.stages=2"}), 0, 8, 4},
        {Resolved(kImages, {"pipeline.stages=2"}), 1, 8, 4},
        {Resolved(kText, {text}), 0, 4, 2},
        {Resolved(kText, {text, "pipeline.stages=2"}), 0, 4, 2},
        {Resolved(kText, {text, "pipeline.stages=2"}), 1, 4, 2},
    };
  }();
  return *all;
}

const Configuration& ConfigurationOf(uint8_t variant) {
  return Configurations()[variant % Configurations().size()];
}

void BoundNumbers(Message* message) {
  constexpr uint32_t kMost = 20, kMostTokens = 100;
  const auto* reflection = message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (field->is_map()) continue;
    if (field->is_repeated()) {
      const int size = is_message ? reflection->FieldSize(*message, field) : 0;
      for (int i = 0; i < size; ++i) {
        BoundNumbers(reflection->MutableRepeatedMessage(message, field, i));
      }
    } else if (is_message) {
      BoundNumbers(reflection->MutableMessage(message, field));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32) {
      const bool counts_tokens = field->name() == "classes" || field->name() == "vocabulary";
      const uint32_t most = counts_tokens ? kMostTokens : kMost;
      const uint32_t value = reflection->GetUInt32(*message, field);
      if (value > most) reflection->SetUInt32(message, field, value % most);
    }
  }
}

template <typename Request>
std::unique_ptr<Message> Empty(uint8_t, const KeptState&) {
  return std::make_unique<Request>();
}

std::unique_ptr<Message> MakeAcquire(uint8_t variant, const KeptState&) {
  constexpr double kSeconds[] = {
      600, 60, 0.001, 0, -1, 601, std::numeric_limits<double>::quiet_NaN(), 1e-300};
  auto request = std::make_unique<AcquireRequest>();
  request->set_lease_seconds(kSeconds[variant % 8]);
  request->set_holder("a peer");
  return request;
}

std::unique_ptr<Message> MakeConfigure(uint8_t variant, const KeptState&) {
  auto request = std::make_unique<ConfigureRequest>();
  const Configuration& configuration = ConfigurationOf(variant);
  *request->mutable_experiment() = configuration.experiment;
  request->set_stage(configuration.stage);
  request->set_threads(1);
  request->set_link_secret(kLinkSecretForTests);
  return request;
}

constexpr const char* kTargets[] = {"", "unix:/nonexistent/socket", "unix:", "ipv4:"};

std::unique_ptr<Message> MakeConnect(uint8_t variant, const KeptState&) {
  auto request = std::make_unique<ConnectRequest>();
  request->add_downstream(kTargets[variant % 4]);
  request->add_last(kTargets[variant / 4 % 4]);
  return request;
}

std::unique_ptr<Message> MakeTrain(uint8_t variant, const KeptState&) {
  auto request = std::make_unique<TrainRequest>();
  request->set_epoch(variant / 8 % 4);
  request->set_samples(ConfigurationOf(variant % 8).train_samples);
  if (variant & 0x40) request->set_last_step(1);
  return request;
}

std::unique_ptr<Message> MakeEndTraining(uint8_t variant, const KeptState&) {
  auto request = std::make_unique<EndTrainingRequest>();
  if (variant % 4 > 0) request->set_last_step(variant % 4 - 1);
  return request;
}

std::unique_ptr<Message> MakeTakeSnapshot(uint8_t variant, const KeptState&) {
  auto request = std::make_unique<TakeSnapshotRequest>();
  request->set_codec_state(variant % 2 == 1);
  return request;
}

std::unique_ptr<Message> MakeReadSnapshot(uint8_t variant, const KeptState&) {
  auto request = std::make_unique<ReadSnapshotRequest>();
  request->set_file(variant % 8);
  return request;
}

std::unique_ptr<Message> MakeRestore(uint8_t variant, const KeptState& kept) {
  auto request = std::make_unique<RestoreRequest>();
  *request->mutable_part() = kept.part;
  request->set_step(variant % 8);
  request->set_data(kept.file);
  return request;
}

std::unique_ptr<Message> MakeHoldState(uint8_t variant, const KeptState&) {
  auto request = std::make_unique<HoldStateRequest>();
  request->set_step(variant % 8);
  request->set_readers(variant / 8 % 4);
  return request;
}

std::unique_ptr<Message> MakeFetchState(uint8_t variant, const KeptState&) {
  auto request = std::make_unique<FetchStateRequest>();
  request->set_from(kTargets[variant % 4]);
  request->set_step(variant / 4 % 8);
  return request;
}

std::unique_ptr<Message> MakeEvaluate(uint8_t variant, const KeptState&) {
  auto request = std::make_unique<EvaluateRequest>();
  request->set_epoch(1);
  request->set_samples(ConfigurationOf(variant % 8).test_samples);
  request->set_compressed((variant & 8) != 0);
  if (variant & 16) request->set_recalibration_samples(4);
  if (variant & 32) request->set_calibrates(true);
  return request;
}

std::unique_ptr<Message> MakeImport(uint8_t variant, const KeptState& kept) {
  auto request = std::make_unique<ImportParametersRequest>();
  request->set_data(kept.file);
  if (variant % 2 == 1) request->add_kept("stem.0.weight");
  return request;
}

std::unique_ptr<Message> MakeGradients(uint8_t variant, const KeptState&) {
  auto request = std::make_unique<GradientsRequest>();
  request->set_epoch(1);
  request->set_batch(variant / 8 % 4);
  request->set_samples(ConfigurationOf(variant % 8).train_samples);
  request->set_compressed((variant & 0x40) != 0);
  return request;
}

std::unique_ptr<Message> MakeGenerate(uint8_t variant, const KeptState&) {
  auto request = std::make_unique<GenerateRequest>();
  request->set_step(1 + variant / 8 % 4);
  request->set_first_position(variant % 8);
  for (int i = 0; i < variant / 32; ++i) request->add_ids(i);
  request->mutable_sampling()->set_temperature(1);
  return request;
}

std::unique_ptr<Message> MakeExportCapture(uint8_t variant, const KeptState&) {
  auto request = std::make_unique<ExportCaptureRequest>();
  request->set_step(variant % 4);
  return request;
}

std::unique_ptr<Message> MakeReadInitial(uint8_t variant, const KeptState&) {
  auto request = std::make_unique<ReadInitialRequest>();
  for (int i = 0; i < variant % 4; ++i) {
    request->add_tensors()->set_name("stem.0.weight");
    request->mutable_tensors()->rbegin()->set_source("stem.0.weight");
  }
  if (variant & 8) request->add_kept("stem.0.weight");
  return request;
}

constexpr ControlCall kCalls[] = {
    {'a', "Acquire", MakeAcquire},
    {'n', "Renew", Empty<RenewRequest>},
    {'c', "Configure", MakeConfigure},
    {'x', "Connect", MakeConnect},
    {'t', "Train", MakeTrain},
    {'e', "EndTraining", MakeEndTraining},
    {'s', "TakeSnapshot", MakeTakeSnapshot},
    {'d', "ReadSnapshot", MakeReadSnapshot},
    {'r', "Restore", MakeRestore},
    {'m', "HoldState", MakeHoldState},
    {'y', "FetchState", MakeFetchState},
    {'v', "Evaluate", MakeEvaluate},
    {'p', "ExportParameters", Empty<ExportParametersRequest>},
    {'i', "ImportParameters", MakeImport},
    {'f', "ListInitial", Empty<ListInitialRequest>},
    {'j', "ReadInitial", MakeReadInitial},
    {'g', "Gradients", MakeGradients},
    {'w', "Generate", MakeGenerate},
    {'q', "ExportCapture", MakeExportCapture},
    {'z', "Release", Empty<ReleaseRequest>},
};

}  // namespace

const std::string& DataFolder() {
  static const std::string* const folder = [] {
    const char* root = std::getenv("TEST_TMPDIR");
    std::string path = std::string(root != nullptr ? root : "/tmp") + "/thinwire-fuzz-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) Fail(path + ": cannot make the folder");
    std::atexit([] { std::filesystem::remove_all(DataFolder()); });
    return new std::string(path);
  }();
  return *folder;
}

absl::Span<const ControlCall> ControlCalls() { return kCalls; }

size_t NumConfigurations() { return Configurations().size(); }

void BoundCost(ConfigureRequest* request) {
  Experiment* experiment = request->mutable_experiment();
  BoundNumbers(experiment->mutable_model());
  BoundNumbers(experiment->mutable_pipeline());
  BoundNumbers(experiment->mutable_compression());
  DataConfig* data = experiment->mutable_data();
  BoundNumbers(data);
  // A limit that is absent or 0 would mean all samples there are.
  if (data->limit() == 0 && data->windows() == 0) {
    data->name() == "digits" ? data->set_limit(8) : data->set_windows(4);
  }
  if (data->test_limit() == 0) data->set_test_limit(2);
  PipelineConfig* pipeline = experiment->mutable_pipeline();
  pipeline->set_deadline_seconds(std::min(pipeline->deadline_seconds(), 0.01));
  if (request->threads() <= 1024) request->set_threads(std::min(request->threads(), 2u));
}

const Lease& LeaseIn(const Message& request) {
  const auto* field = request.GetDescriptor()->FindFieldByName("lease");
  return static_cast<const Lease&>(request.GetReflection()->GetMessage(request, field));
}

void SetLease(const Lease& lease, Message* request) {
  const auto* field = request->GetDescriptor()->FindFieldByName("lease");
  request->GetReflection()->MutableMessage(request, field)->CopyFrom(lease);
}

}  // namespace thinwire
