#include "tests/pipeline_testing.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "config/experiment.h"
#include "grpcpp/grpcpp.h"
#include "nlohmann/json.hpp"
#include "stage_server/lease_testing.h"

namespace thinwire {
namespace {

class Folder {
 public:
  Folder() {
    char path[] = "/tmp/thinwire-test-XXXXXX";
    path_ = mkdtemp(path);
  }
  ~Folder() { (void)!std::system(("rm -rf " + path_).c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

constexpr auto kCallSeconds = std::chrono::seconds(120);

absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

struct CallContext : grpc::ClientContext {
  CallContext() { set_deadline(std::chrono::system_clock::now() + kCallSeconds); }
};

// Adds the tensors of one safetensors file to `parameters`.
void AddTensors(const std::string& file, std::map<std::string, std::string>* parameters) {
  uint64_t header_bytes = 0;
  // The header's length stands in the first eight bytes, in little-endian, so the last byte is
  // shifted in first.
  for (int i = 7; i >= 0; --i) header_bytes = header_bytes << 8 | static_cast<uint8_t>(file[i]);
  const auto header = nlohmann::json::parse(file.substr(8, header_bytes));
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    const size_t begin = tensor["data_offsets"][0], end = tensor["data_offsets"][1];
    (*parameters)[name] = file.substr(8 + header_bytes + begin, end - begin);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Pipeline>> Pipeline::Start(const Experiment& experiment, bool tcp,
                                                          const std::string& folder,
                                                          const std::string& cuda_plugin) {
  std::unique_ptr<Pipeline> pipeline(new Pipeline);
  pipeline->experiment_ = experiment;
  pipeline->lease_ = LeaseOf("test");
  for (uint32_t i = 0; i < experiment.pipeline().stages(); ++i) {
    ServerOptions options;
    options.metrics_listen.clear();  // the metrics server takes a second to stop
    options.cuda_plugin = cuda_plugin;
    if (!tcp) options.listen = absl::StrCat("unix:", folder, "/", i, ".sock");
    Member member;
    ASSIGN_OR_RETURN(member.server, StartStageServer(options));
    member.address = member.server->address();
    member.stub =
        Stage::NewStub(grpc::CreateChannel(member.address, grpc::InsecureChannelCredentials()));
    pipeline->members_.push_back(std::move(member));
  }
  return pipeline;
}

Pipeline::~Pipeline() {
  for (Member& member : members_) {
    CallContext context;
    ReleaseRequest request;
    *request.mutable_lease() = lease_;
    ReleaseResponse response;
    (void)member.stub->Release(&context, request, &response);
    member.stub.reset();
  }
  std::vector<std::thread> ends;
  for (Member& member : members_) ends.emplace_back([&member] { member.server->Shutdown(); });
  for (std::thread& end : ends) end.join();
}

absl::Status Pipeline::SetUp() {
  for (size_t i = 0; i < members_.size(); ++i) {
    CallContext acquire_context, configure_context;
    AcquireRequest acquire;
    *acquire.mutable_lease() = lease_;
    acquire.set_lease_seconds(120);
    acquire.set_holder("test");
    AcquireResponse acquired;
    RETURN_IF_ERROR(FromGrpc(members_[i].stub->Acquire(&acquire_context, acquire, &acquired)));
    ConfigureRequest configure;
    *configure.mutable_lease() = lease_;
    *configure.mutable_experiment() = experiment_;
    configure.set_stage(i);
    configure.set_threads(1);
    configure.set_link_secret("what a link shows");
    ConfigureResponse configured;
    RETURN_IF_ERROR(
        FromGrpc(members_[i].stub->Configure(&configure_context, configure, &configured)));
    if (i == 0) {
      train_samples_ = configured.train_samples();
      test_samples_ = configured.test_samples();
    }
  }
  for (size_t i = 0; i < members_.size(); ++i) {
    CallContext context;
    ConnectRequest request;
    *request.mutable_lease() = lease_;
    const bool is_ring = experiment_.pipeline().schedule() == "interleaved" && members_.size() > 1;
    const size_t next = (i + 1) % members_.size();
    if (next > 0 || is_ring) request.add_downstream(members_[next].address);
    request.add_last(members_.back().address);
    ConnectResponse response;
    RETURN_IF_ERROR(FromGrpc(members_[i].stub->Connect(&context, request, &response)));
  }
  return absl::OkStatus();
}

template <typename Call>
absl::StatusOr<std::vector<Pipeline::Events>> Pipeline::AtEveryStage(const Call& call) {
  std::vector<Events> events(members_.size());
  std::vector<absl::Status> statuses(members_.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < members_.size(); ++i) {
    threads.emplace_back([&, i] {
      CallContext context;
      auto reader = call(members_[i].stub.get(), &context);
      for (StageEvent event; reader->Read(&event);) events[i].push_back(event);
      statuses[i] = FromGrpc(reader->Finish());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) RETURN_IF_ERROR(status);
  return events;
}

absl::StatusOr<EvaluationReport> Pipeline::Evaluate(bool compressed,
                                                    uint64_t recalibration_samples) {
  EvaluateRequest request;
  *request.mutable_lease() = lease_;
  request.set_epoch(experiment_.epochs());
  request.set_compressed(compressed);
  request.set_samples(test_samples_);
  request.set_recalibration_samples(recalibration_samples);
  ASSIGN_OR_RETURN(const auto events, AtEveryStage([&](Stage::Stub* stub, CallContext* context) {
                     return stub->Evaluate(context, request);
                   }));
  return events.back().back().evaluation();
}

absl::Status Pipeline::Export(Trained* outcome) {
  for (Member& member : members_) {
    CallContext context;
    ExportParametersRequest request;
    *request.mutable_lease() = lease_;
    auto reader = member.stub->ExportParameters(&context, request);
    std::string file;
    for (FileChunk chunk; reader->Read(&chunk);) file += chunk.data();
    RETURN_IF_ERROR(FromGrpc(reader->Finish()));
    AddTensors(file, &outcome->parameters);
  }
  return absl::OkStatus();
}

absl::StatusOr<Trained> Pipeline::Run() {
  Trained outcome;
  for (uint32_t epoch = 1; epoch <= experiment_.epochs(); ++epoch) {
    TrainRequest request;
    *request.mutable_lease() = lease_;
    request.set_epoch(epoch);
    request.set_samples(train_samples_);
    ASSIGN_OR_RETURN(const auto events, AtEveryStage([&](Stage::Stub* stub, CallContext* context) {
                       return stub->Train(context, request);
                     }));
    for (const StageEvent& event : events.back()) {
      if (event.has_step()) outcome.step_losses.push_back(event.step().loss());
    }
    outcome.exchanged_bytes = 0;  // stages report sums since their begin
    for (const Events& of_stage : events) {
      const StageReport& stage = of_stage.back().stage();
      outcome.exchanged_bytes += stage.contributions().wire_bytes() + stage.average().wire_bytes();
      for (const BoundaryReport& end : stage.boundaries()) {
        const char* direction = end.gradient() ? "/gradient" : "/activation";
        if (end.sender()) outcome.boundaries[absl::StrCat(end.boundary(), direction)] = end;
      }
    }
  }
  ASSIGN_OR_RETURN(const EvaluationReport compressed, Evaluate(true, 0));
  ASSIGN_OR_RETURN(const EvaluationReport uncompressed, Evaluate(false, 0));
  ASSIGN_OR_RETURN(const EvaluationReport recalibrated, Evaluate(false, train_samples_));
  outcome.compressed_loss = compressed.loss();
  outcome.compressed_correct = compressed.correct();
  outcome.uncompressed_loss = uncompressed.loss();
  outcome.recalibrated_loss = recalibrated.loss();
  outcome.uncompressed_correct = uncompressed.correct();
  RETURN_IF_ERROR(Export(&outcome));
  return outcome;
}

Trained TrainPipeline(const std::string& experiment, const std::vector<std::string>& overrides,
                      bool tcp, const std::string& cuda_plugin) {
  const Folder folder;
  const absl::StatusOr<Experiment> resolved = ParseExperiment(experiment, "test", overrides);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  const auto pipeline = Pipeline::Start(*resolved, tcp, folder.path(), cuda_plugin);
  EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  const absl::Status ready = (*pipeline)->SetUp();
  EXPECT_TRUE(ready.ok()) << ready;
  const absl::StatusOr<Trained> outcome = (*pipeline)->Run();
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  return outcome.ok() ? *outcome : Trained{};
}

}  // namespace thinwire
