// The control calls over a real socket, as a coordinator makes them in the right and wrong order.
#include "stage_server/service.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/safetensors.h"
#include "config/experiment.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "prometheus/text_serializer.h"
#include "spdlog/sinks/base_sink.h"
#include "stage_server/lease_testing.h"
#include "stage_server/server.h"
#include "tensor/host_pool.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr char kExperiment[] = R"(
name: service
model: {name: resnet8, width: 4}
data: {name: digits, batch_size: 20, limit: 40, test_limit: 20}
pipeline: {cuts: [], threads: 1}
optimizer: {lr: 0.1}
epochs: 1
device: cpu
)";

// The lines of a log without their times.
class KeptLines final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  std::vector<std::string> lines() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return lines_;
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t buffer;
    formatter_->format(message, buffer);
    const std::string line(buffer.data(), buffer.size() - 1);  // without the line's end
    lines_.push_back(line.substr(line.find(' ') + 1));
  }
  void flush_() override {}

  std::vector<std::string> lines_;
};

class ServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ServerOptions options;
    options.log = log_.get();
    options.opening_patience = absl::Seconds(1);
    server_ = *StartStageServer(options);
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    stub_ = Stage::NewStub(channel_);
  }
  void TearDown() override { stub_.reset(); }

  grpc::Status Acquire(const Lease& lease, AcquireResponse* response) {
    grpc::ClientContext context;
    AcquireRequest request;
    *request.mutable_lease() = lease;
    request.set_lease_seconds(60);
    request.set_holder("a test");
    return stub_->Acquire(&context, request, response);
  }
  grpc::Status Configure(const Lease& lease, uint32_t stage, uint32_t threads,
                         ConfigureResponse* response) {
    grpc::ClientContext context;
    ConfigureRequest request;
    *request.mutable_lease() = lease;
    *request.mutable_experiment() = *ParseExperiment(kExperiment, "test", overrides_);
    change_(request.mutable_experiment());
    request.set_link_secret(link_secret_);
    request.set_stage(stage);
    request.set_threads(threads);
    return stub_->Configure(&context, request, response);
  }
  grpc::Status Train(const Lease& lease, uint64_t samples, int* steps, uint32_t epoch = 1) {
    grpc::ClientContext context;
    TrainRequest request;
    *request.mutable_lease() = lease;
    request.set_epoch(epoch);
    request.set_samples(samples);
    auto reader = stub_->Train(&context, request);
    for (StageEvent event; reader->Read(&event);) {
      *steps += event.has_step() ? 1 : 0;
      if (event.has_stage()) report_ = event.stage();
    }
    return reader->Finish();
  }
  uint64_t Advances(const Lease& lease) {
    grpc::ClientContext context;
    RenewRequest request;
    *request.mutable_lease() = lease;
    RenewResponse response;
    EXPECT_TRUE(stub_->Renew(&context, request, &response).ok());
    return response.advances();
  }
  grpc::Status Evaluate(const Lease& lease, uint64_t samples) {
    grpc::ClientContext context;
    EvaluateRequest request;
    *request.mutable_lease() = lease;
    request.set_epoch(1);
    request.set_samples(samples);
    return EndOf(stub_->Evaluate(&context, request).get());
  }
  grpc::Status Gradients(const Lease& lease, uint64_t samples, uint64_t batch) {
    grpc::ClientContext context;
    GradientsRequest request;
    *request.mutable_lease() = lease;
    request.set_epoch(1);
    request.set_batch(batch);
    request.set_samples(samples);
    return EndOf(stub_->Gradients(&context, request).get());
  }
  grpc::Status Generate(const Lease& lease) {
    grpc::ClientContext context;
    GenerateRequest request;
    *request.mutable_lease() = lease;
    GenerateResponse response;
    return stub_->Generate(&context, request, &response);
  }
  static grpc::Status EndOf(grpc::ClientReader<StageEvent>* reader) {
    StageEvent event;
    while (reader->Read(&event)) continue;
    return reader->Finish();
  }
  grpc::Status Connect(const Lease& lease, const std::string& downstream) {
    grpc::ClientContext context;
    ConnectRequest request;
    *request.mutable_lease() = lease;
    request.set_downstream(downstream);
    ConnectResponse response;
    return stub_->Connect(&context, request, &response);
  }
  grpc::Status Release(const Lease& lease) {
    grpc::ClientContext context;
    ReleaseRequest request;
    *request.mutable_lease() = lease;
    ReleaseResponse response;
    return stub_->Release(&context, request, &response);
  }
  std::string ReadSnapshot(int file, grpc::StatusCode code) {
    grpc::ClientContext context;
    ReadSnapshotRequest request;
    *request.mutable_lease() = LeaseOf("one");
    request.set_file(static_cast<uint32_t>(file));
    auto reader = stub_->ReadSnapshot(&context, request);
    std::string bytes;
    for (FileChunk chunk; reader->Read(&chunk);) bytes += chunk.data();
    EXPECT_EQ(reader->Finish().error_code(), code);
    return bytes;
  }
  grpc::Status Restore(const Lease& lease, const StatePart& part, const std::string& file) {
    grpc::ClientContext context;
    RestoreResponse response;
    auto writer = stub_->Restore(&context, &response);
    RestoreRequest request;
    *request.mutable_lease() = lease;
    *request.mutable_part() = part;
    request.set_step(1);
    request.set_data(file);
    writer->Write(request);
    writer->WritesDone();
    return writer->Finish();
  }
  // What the last report says of one direction of the only cut.
  BoundaryReport SenderOf(bool gradient) const {
    for (const BoundaryReport& end : report_.boundaries()) {
      if (end.sender() && end.gradient() == gradient) return end;
    }
    return {};
  }

  std::string Export(const Lease& lease) {
    grpc::ClientContext context;
    ExportParametersRequest request;
    *request.mutable_lease() = lease;
    auto reader = stub_->ExportParameters(&context, request);
    std::string file;
    for (FileChunk chunk; reader->Read(&chunk);) file += chunk.data();
    EXPECT_TRUE(reader->Finish().ok());
    return file;
  }
  // Sends the file in pieces of 1000 bytes.
  grpc::Status Import(const Lease& lease, const std::string& file, const std::string& kept = "") {
    grpc::ClientContext context;
    ImportParametersResponse response;
    auto writer = stub_->ImportParameters(&context, &response);
    for (size_t at = 0; at < file.size(); at += 1000) {
      ImportParametersRequest request;
      if (at == 0) {
        *request.mutable_lease() = lease;
        if (!kept.empty()) request.add_kept(kept);
      }
      request.set_data(file.substr(at, 1000));
      if (!writer->Write(request)) break;
    }
    writer->WritesDone();
    return writer->Finish();
  }

  std::vector<std::string> Lines() const { return logged_->lines(); }

  const std::shared_ptr<KeptLines> logged_ = std::make_shared<KeptLines>();
  const std::unique_ptr<Log> log_ = *Log::New({}, logged_);
  std::unique_ptr<StageServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<Stage::Stub> stub_;
  std::vector<std::string> overrides_;
  std::string link_secret_ = "what a link shows";
  std::function<void(Experiment*)> change_ = [](Experiment*) {};  // what a coordinator would not do
  StageReport report_;                                            // the last one of training
  AcquireResponse acquired_;
  ConfigureResponse configured_;
};

TEST_F(ServiceTest, AcquireTellsWhatTheServerIs) {
  ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  EXPECT_EQ(acquired_.metrics_address(), server_->metrics_address());
  EXPECT_GT(acquired_.cores(), 0u);
  EXPECT_FALSE(acquired_.build().build_id().empty());
  EXPECT_FALSE(acquired_.build().libraries().at("onednn").empty());
}

TEST_F(ServiceTest, WhoLacksTheLeasesSecretIsToldNothingOfIt) {
  constexpr char kRefusal[] =
      "this server is leased, and this call does not have the lease's secret";
  ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  ASSERT_TRUE(Configure(LeaseOf("one"), 0, 1, &configured_).ok());
  Lease outsider = LeaseOf("one", 2);
  outsider.set_secret("a guess of a secret");
  const grpc::Status status = Acquire(outsider, &acquired_);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(status.error_message(), kRefusal);
  EXPECT_THAT(Lines().back(),
              MatchesRegex("warning run one: a lease is refused to a test at ipv4:.*: this server "
                           "is leased.*; it is of run one generation 1 \\(a test at ipv4:.*\\)"));
  outsider.set_generation(1);
  EXPECT_EQ(Release(outsider).error_message(), kRefusal);
  EXPECT_EQ(Evaluate(outsider, 20).error_message(), kRefusal);
  int steps = 0;
  EXPECT_EQ(Train(outsider, 40, &steps).error_message(), kRefusal);
  EXPECT_TRUE(Train(LeaseOf("one"), 40, &steps).ok());
}

TEST_F(ServiceTest, AStageWantsASecretForItsLinks) {
  ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  link_secret_ = "fifteen letters";
  EXPECT_EQ(Configure(LeaseOf("one"), 0, 1, &configured_).error_message(),
            "link_secret: 15 bytes, want at least 16");
}

TEST_F(ServiceTest, CallsOfALowerGenerationAreRefused) {
  ASSERT_TRUE(Acquire(LeaseOf("one", 1), &acquired_).ok());
  ASSERT_TRUE(Acquire(LeaseOf("one", 2), &acquired_).ok());
  const grpc::Status status = Configure(LeaseOf("one", 1), 0, 1, &configured_);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("generation 2"));
}

TEST_F(ServiceTest, TrainingWantsAConfiguredStage) {
  ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  int steps = 0;
  const grpc::Status status = Train(LeaseOf("one"), 40, &steps);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("not configured"));
}

TEST_F(ServiceTest, TextsWantTheHolderAndALanguageModel) {
  const Lease lease = LeaseOf("one", 2);
  ASSERT_TRUE(Acquire(lease, &acquired_).ok());
  EXPECT_THAT(Generate(lease).error_message(), HasSubstr("not configured"));
  ASSERT_TRUE(Configure(lease, 0, 1, &configured_).ok());
  EXPECT_THAT(Generate(LeaseOf("one", 1)).error_message(), HasSubstr("generation 2"));
  EXPECT_THAT(Generate(lease).error_message(), HasSubstr("model resnet8 takes no tokens"));
}

TEST_F(ServiceTest, ConfiguresAndTrainsAndNamesWrongNumbers) {
  ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  EXPECT_THAT(Configure(LeaseOf("one"), 1, 1, &configured_).error_message(),
              HasSubstr("stage 1, want 0 to 0"));
  EXPECT_THAT(Configure(LeaseOf("one"), 0, 0, &configured_).error_message(),
              HasSubstr("threads: 0"));
  const grpc::Status status = Configure(LeaseOf("one"), 0, 1, &configured_);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(configured_.train_samples(), 40u);
  EXPECT_GT(configured_.parameters(), 1000u);
  EXPECT_EQ(configured_.device().name(), "cpu");
  int steps = 0;
  EXPECT_THAT(Train(LeaseOf("one"), 41, &steps).error_message(),
              HasSubstr("reads 40 training samples, the run has 41"));
  EXPECT_TRUE(Train(LeaseOf("one"), 40, &steps).ok());
  EXPECT_EQ(steps, 2);
}

TEST_F(ServiceTest, ARenewalSaysHowFarTheStageIs) {
  const Lease lease = LeaseOf("one");
  ASSERT_TRUE(Acquire(lease, &acquired_).ok());
  EXPECT_EQ(Advances(lease), 0u);
  ASSERT_TRUE(Configure(lease, 0, 1, &configured_).ok());
  EXPECT_EQ(Advances(lease), 0u);
  int steps = 0;
  ASSERT_TRUE(Train(lease, 40, &steps).ok());
  EXPECT_EQ(Advances(lease), 4u);  // two steps, forward and backward
  ASSERT_TRUE(Evaluate(lease, 20).ok());
  EXPECT_EQ(Advances(lease), 5u);
}

TEST_F(ServiceTest, ReportsMeansOfTheMeasuredMessagesThatEachNumberIsAbout) {
  overrides_ = {"pipeline.cuts=[layer1]", "pipeline.stages=1", "metrics.error_every=1", "epochs=2",
                "compression.activations={codec: uniform, bits: 4, feedback: aq_sgd}"};
  const Lease lease = LeaseOf("one");
  ASSERT_TRUE(Acquire(lease, &acquired_).ok());
  const grpc::Status status = Configure(lease, 0, 1, &configured_);
  ASSERT_TRUE(status.ok()) << status.error_message();
  int steps = 0;
  ASSERT_TRUE(Train(lease, 40, &steps, /*epoch=*/1).ok());  // first visits go exact
  for (const bool gradient : {false, true}) {
    const BoundaryReport exact = SenderOf(gradient);
    EXPECT_EQ(exact.measured_messages(), 2u);
    EXPECT_EQ(exact.cosine(), 1);
    EXPECT_EQ(exact.relative_error(), 0);
    EXPECT_FALSE(exact.has_codec_relative_error());
    EXPECT_FALSE(exact.has_relative_residual());
  }
  ASSERT_TRUE(Train(lease, 40, &steps, /*epoch=*/2).ok());
  const BoundaryReport coded = SenderOf(/*gradient=*/false);
  EXPECT_EQ(coded.measured_messages(), 4u);
  // What the codec got was the difference to the state.
  EXPECT_NEAR(coded.codec_relative_error() * coded.relative_residual(), 2 * coded.relative_error(),
              0.3 * coded.relative_error());
  EXPECT_GT(coded.codec_relative_error(), 0.01);
  EXPECT_LT(coded.cosine(), 1);
}

TEST_F(ServiceTest, WhatWasExportedIsImportedAndNothingElse) {
  const Lease lease = LeaseOf("one");
  ASSERT_TRUE(Acquire(lease, &acquired_).ok());
  ASSERT_TRUE(Configure(lease, 0, 1, &configured_).ok());
  const std::string initial = Export(lease);
  int steps = 0;
  ASSERT_TRUE(Train(lease, 40, &steps).ok());
  const std::string trained = Export(lease);
  ASSERT_NE(trained, initial);
  EXPECT_EQ(Import(lease, initial.substr(0, initial.size() - 1)).error_code(),
            grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(Export(lease), trained);
  const grpc::Status status = Import(lease, initial);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(Export(lease), initial);
  EXPECT_EQ(Import(LeaseOf("two"), initial).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(ServiceTest, AParameterThatIsSaidToBeKeptIsNotInTheFileAndStays) {
  const Lease lease = LeaseOf("one");
  ASSERT_TRUE(Acquire(lease, &acquired_).ok());
  ASSERT_TRUE(Configure(lease, 0, 1, &configured_).ok());
  const std::string initial = Export(lease);
  int steps = 0;
  ASSERT_TRUE(Train(lease, 40, &steps).ok());
  const std::string trained = Export(lease);
  Safetensors rest = *ParseSafetensors(initial);
  const StoredTensor kept = ParseSafetensors(trained)->tensors[0];
  rest.tensors.erase(rest.tensors.begin());
  std::string file;
  ASSERT_TRUE(WriteSafetensors(rest, size_t{1} << 20, [&](std::string_view piece) {
                file += piece;
                return absl::OkStatus();
              }).ok());
  EXPECT_THAT(Import(lease, file).error_message(), HasSubstr(kept.name + " is missing"));
  const grpc::Status status = Import(lease, file, kept.name);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const std::string now = Export(lease);
  const Safetensors after = *ParseSafetensors(now);
  EXPECT_EQ(after.tensors[0].data, kept.data);
  ASSERT_EQ(after.tensors.size(), rest.tensors.size() + 1);
  for (size_t i = 0; i < rest.tensors.size(); ++i) {
    EXPECT_EQ(after.tensors[i + 1].data, rest.tensors[i].data) << rest.tensors[i].name;
  }
}

TEST_F(ServiceTest, MoreThanTheStageHasIsNotGathered) {
  const Lease lease = LeaseOf("one");
  ASSERT_TRUE(Acquire(lease, &acquired_).ok());
  ASSERT_TRUE(Configure(lease, 0, 1, &configured_).ok());
  const grpc::Status status = Import(lease, std::string(size_t{20} << 20, 'x'));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("parameters of more than"));
}

TEST_F(ServiceTest, TrainingEndsAfterTheStepThatIsSaid) {
  const Lease lease = LeaseOf("one");
  ASSERT_TRUE(Acquire(lease, &acquired_).ok());
  ASSERT_TRUE(Configure(lease, 0, 1, &configured_).ok());
  const auto end_training = [&](const EndTrainingRequest& asked, EndTrainingResponse* response) {
    grpc::ClientContext context;
    EndTrainingRequest request = asked;
    *request.mutable_lease() = lease;
    return stub_->EndTraining(&context, request, response);
  };
  EndTrainingResponse held, ends;
  ASSERT_TRUE(end_training({}, &held).ok());
  EXPECT_EQ(held.begun_step(), 0u);
  EndTrainingRequest after;
  after.set_last_step(1);
  ASSERT_TRUE(end_training(after, &ends).ok());
  int steps = 0;
  EXPECT_TRUE(Train(lease, 40, &steps).ok());
  EXPECT_EQ(steps, 1);
  EXPECT_FALSE(Export(lease).empty());
  after.set_last_step(0);
  EXPECT_THAT(end_training(after, &ends).error_message(),
              HasSubstr("last_step: 0, a later one has begun"));
}

TEST_F(ServiceTest, ABatchThatTheEpochDoesNotHaveIsRefused) {
  const Lease lease = LeaseOf("one");
  ASSERT_TRUE(Acquire(lease, &acquired_).ok());
  ASSERT_TRUE(Configure(lease, 0, 1, &configured_).ok());
  for (const uint64_t batch : {uint64_t{0}, uint64_t{3}, uint64_t{1} << 63}) {
    EXPECT_THAT(Gradients(lease, 40, batch).error_message(), HasSubstr("batches 1 to 2"));
  }
}

TEST_F(ServiceTest, EpochsCountFromOne) {
  const Lease lease = LeaseOf("one");
  ASSERT_TRUE(Acquire(lease, &acquired_).ok());
  ASSERT_TRUE(Configure(lease, 0, 1, &configured_).ok());
  int steps = 0;
  EXPECT_THAT(Train(lease, 40, &steps, /*epoch=*/0).error_message(), HasSubstr("epoch 0"));
}

TEST_F(ServiceTest, NothingRunsBeforeTheNeighboursAreConnected) {
  overrides_ = {"pipeline.cuts=[layer1]", "pipeline.stages=2"};
  const Lease lease = LeaseOf("one");
  ASSERT_TRUE(Acquire(lease, &acquired_).ok());
  ASSERT_TRUE(Configure(lease, 0, 1, &configured_).ok());
  int steps = 0;
  for (const grpc::Status& status :
       {Train(lease, 40, &steps), Evaluate(lease, 20), Gradients(lease, 40, 1)}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_EQ(status.error_message(), "stage 0 is not connected to stage 1");
  }
}

TEST_F(ServiceTest, AnExperimentIsCheckedHereToo) {
  const Lease lease = LeaseOf("one");
  ASSERT_TRUE(Acquire(lease, &acquired_).ok());
  change_ = [](Experiment* e) { e->mutable_data()->set_batch_size(0); };
  EXPECT_THAT(Configure(lease, 0, 1, &configured_).error_message(), HasSubstr("data.batch_size"));
  change_ = [](Experiment* e) { e->mutable_pipeline()->set_deadline_seconds(0); };
  EXPECT_THAT(Configure(lease, 0, 1, &configured_).error_message(), HasSubstr("deadline_seconds"));
  change_ = [](Experiment* e) { e->mutable_pipeline()->clear_microbatches(); };
  const grpc::Status status = Configure(lease, 0, 1, &configured_);
  ASSERT_TRUE(status.ok()) << status.error_message();  // absent: the default
  int steps = 0;
  EXPECT_TRUE(Train(lease, 40, &steps).ok());
}

// Takes connections and says nothing.
class SilentListener {
 public:
  SilentListener() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(socket_, any, size), 0);
    EXPECT_EQ(listen(socket_, 1), 0);
    EXPECT_EQ(getsockname(socket_, any, &size), 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }
  ~SilentListener() {
    close(connection_);
    close(socket_);
  }
  const std::string& address() const { return address_; }
  void WaitForDialler() { connection_ = accept(socket_, nullptr, nullptr); }

 private:
  const int socket_;
  int connection_ = -1;
  std::string address_;
};

TEST_F(ServiceTest, ReleaseEndsAConnectAndTheNextRunListensAtTheSameCuts) {
  overrides_ = {"pipeline.cuts=[stem, layer1]", "pipeline.stages=3"};
  ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  ASSERT_TRUE(Configure(LeaseOf("one"), 1, 1, &configured_).ok());
  SilentListener listener;
  grpc::Status connected;
  std::thread connect([&] { connected = Connect(LeaseOf("one"), listener.address()); });
  listener.WaitForDialler();
  ASSERT_TRUE(Release(LeaseOf("one")).ok());
  ASSERT_TRUE(Acquire(LeaseOf("two"), &acquired_).ok());
  const grpc::Status status = Configure(LeaseOf("two"), 1, 1, &configured_);
  EXPECT_TRUE(status.ok()) << status.error_message();
  connect.join();
  EXPECT_THAT(connected.error_message(), HasSubstr("the run was released"));
}

TEST_F(ServiceTest, ReleaseEndsAnImportThatGoesSilent) {
  overrides_ = {"pipeline.cuts=[stem, layer1]", "pipeline.stages=3"};
  ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  ASSERT_TRUE(Configure(LeaseOf("one"), 1, 1, &configured_).ok());
  grpc::ClientContext context;
  ImportParametersResponse response;
  auto writer = stub_->ImportParameters(&context, &response);
  ImportParametersRequest request;
  *request.mutable_lease() = LeaseOf("one");
  // A header of 16 MiB, as far as its length says.
  request.set_data(std::string("\0\0\0\1\0\0\0\0", 8) + std::string(size_t{1} << 20, ' '));
  // More than flow control lets through unread.
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(writer->Write(request));
  ASSERT_TRUE(Release(LeaseOf("one")).ok());
  ASSERT_TRUE(Acquire(LeaseOf("two"), &acquired_).ok());
  const grpc::Status status = Configure(LeaseOf("two"), 1, 1, &configured_);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_THAT(writer->Finish().error_code(),
              AnyOf(grpc::StatusCode::CANCELLED, grpc::StatusCode::FAILED_PRECONDITION));
}

// The service with a backend of the test's own.
class BackendTest : public ServiceTest {
 protected:
  BackendTest()
      : boundaries_(NewBoundaryService()),
        service_([this](const BackendRequest& request) { return open_(request); },
                 boundaries_.get(), &journal_) {}
  void SetUp() override {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    boundaries_->Configure("127.0.0.1:0", &builder);
    builder.RegisterService(&service_);
    grpc_server_ = builder.BuildAndStart();
    channel_ =
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials());
    stub_ = Stage::NewStub(channel_);
  }

  StageService::BackendFactory open_;
  Log no_log_;
  prometheus::Registry registry_;
  Journal journal_{&no_log_, &registry_};
  std::unique_ptr<BoundaryService> boundaries_;
  StageService service_;
  std::unique_ptr<grpc::Server> grpc_server_;
};

TEST_F(BackendTest, AStageBuiltForALeaseThatHasEndedIsNobodys) {
  absl::Notification building, go;
  int opened = 0;
  open_ = [&](const BackendRequest& request) {
    if (++opened == 1) {
      building.Notify();
      go.WaitForNotification();
    }
    return OpenBackend(request, "");
  };
  ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  grpc::Status late;
  std::thread configure([&] {
    ConfigureResponse response;
    late = Configure(LeaseOf("one"), 0, 1, &response);
  });
  building.WaitForNotification();
  ASSERT_TRUE(Release(LeaseOf("one")).ok());
  ASSERT_TRUE(Acquire(LeaseOf("two"), &acquired_).ok());
  go.Notify();
  configure.join();
  EXPECT_EQ(late.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(late.error_message(), HasSubstr("leased to run two"));
  int steps = 0;
  EXPECT_THAT(Train(LeaseOf("two"), 40, &steps).error_message(), HasSubstr("not configured"));
  EXPECT_THAT(prometheus::TextSerializer().Serialize(registry_.Collect()),
              AllOf(HasSubstr("thinwire_errors_total{kind=\"failed_precondition\"} 2\n"),
                    HasSubstr("thinwire_errors_total{kind=\"peer_gone\"} 0\n")));
  ASSERT_TRUE(Configure(LeaseOf("two"), 0, 1, &configured_).ok());
  EXPECT_TRUE(Train(LeaseOf("two"), 40, &steps).ok());
}

// The CPU's memory, counted.
class CountedMemory final : public HostPool {
 public:
  const char* name() const override { return "counted"; }
  int num_blocks() const { return num_blocks_; }

 private:
  void* Obtain(size_t bytes) override {
    ++num_blocks_;
    return std::aligned_alloc(kAlignment, bytes);
  }
  void Return(void* memory) override {
    --num_blocks_;
    std::free(memory);
  }
  std::atomic<int> num_blocks_{0};
};

TEST_F(BackendTest, ARunGivesBackItsMemory) {
  CountedMemory memory;
  open_ = [&memory](const BackendRequest& request) -> absl::StatusOr<Backend> {
    absl::StatusOr<Backend> backend = OpenBackend(request, "");
    if (backend.ok()) backend->device = &memory;
    return backend;
  };
  for (const char* width : {"model.width=4", "model.width=6"}) {
    overrides_ = {width, "pipeline.cuts=[layer1]", "pipeline.stages=1"};
    ASSERT_TRUE(Acquire(LeaseOf(width), &acquired_).ok());
    ASSERT_TRUE(Configure(LeaseOf(width), 0, 1, &configured_).ok());
    int steps = 0;
    const grpc::Status status = Train(LeaseOf(width), 40, &steps);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_GT(memory.num_blocks(), 0);
    ASSERT_TRUE(Release(LeaseOf(width)).ok());
    EXPECT_EQ(memory.num_blocks(), 0);
  }
}

TEST_F(ServiceTest, TheLogTellsARunFromItsLeaseToItsRelease) {
  const Lease lease = LeaseOf("one");
  ASSERT_TRUE(Acquire(lease, &acquired_).ok());
  ASSERT_TRUE(Configure(lease, 0, 1, &configured_).ok());
  ASSERT_TRUE(Connect(lease, "").ok());
  int steps = 0;
  ASSERT_TRUE(Train(lease, 40, &steps).ok());
  ASSERT_TRUE(Evaluate(lease, 20).ok());
  ASSERT_TRUE(Release(lease).ok());
  server_->Shutdown();
  EXPECT_THAT(
      Lines(),
      ElementsAre(
          MatchesRegex("info    run one: leased to a test at ipv4:127.0.0.1:[0-9]+ for 60 s from "
                       "each renewal, generation 1"),
          MatchesRegex("info    run one, stage 0: configured as stage 0 of 1: resnet8, [0-9]+ "
                       "parameters here, on cpu with 1 thread"),
          "info    run one, stage 0: last stage, nothing to connect to",
          "info    run one, stage 0: epoch 1 begins: 40 samples",
          MatchesRegex("info    run one, stage 0: epoch 1 is trained: 40 samples in [0-9.]+ s, "
                       "[0-9]+ samples/s"),
          MatchesRegex("info    run one, stage 0: evaluated after epoch 1 without codecs: 20 "
                       "samples in [0-9.]+ s, loss [0-9.]+, accuracy [0-9.]+ %"),
          "info    run one, stage 0: released by its coordinator; the server is free"));
}

TEST_F(ServiceTest, TheLogNamesTheCodecsOfTheCuts) {
  overrides_ = {"pipeline.cuts=[layer1]", "pipeline.stages=2",
                "compression.activations={codec: uniform, bits: 4, feedback: ef}"};
  ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  ASSERT_TRUE(Configure(LeaseOf("one"), 1, 2, &configured_).ok());
  EXPECT_THAT(Lines().back(), AllOf(HasSubstr("stage 1 of 2"),
                                    HasSubstr("with 2 threads; cut layer1: activations "
                                              "uniform(bits=4, "),
                                    HasSubstr(") with ef("), HasSubstr(", gradients none")));
}

TEST_F(ServiceTest, TheLogSaysWhatWasRefusedAndWhatFailed) {
  ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  EXPECT_FALSE(Acquire(LeaseOf("two"), &acquired_).ok());
  EXPECT_THAT(
      Lines().back(),
      MatchesRegex("warning run two: a lease is refused to a test at ipv4:.*: this server "
                   "is leased to run one generation 1, refused run two generation 1; it is of "
                   "run one generation 1 .*"));
  EXPECT_FALSE(Configure(LeaseOf("one"), 7, 1, &configured_).ok());
  EXPECT_THAT(Lines().back(),
              MatchesRegex("error   run one, stage 7: Configure failed \\(invalid_argument\\): "
                           ".*stage 7, want 0 to 0.*"));
  int steps = 0;
  EXPECT_FALSE(Train(LeaseOf("one"), 40, &steps).ok());
  EXPECT_EQ(Lines().back(),
            "error   run one: Train failed (failed_precondition): the stage is not configured");
}

TEST_F(ServiceTest, ALeaseThatRunsOutIsLogged) {
  AcquireRequest request;
  *request.mutable_lease() = LeaseOf("one");
  request.set_lease_seconds(0.01);
  grpc::ClientContext context;
  ASSERT_TRUE(stub_->Acquire(&context, request, &acquired_).ok());
  while (Lines().size() < 2) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(Lines().back(),
            "error   run one: the coordinator stopped renewing its lease; the run ends here and "
            "the server is free");
}

TEST_F(ServiceTest, PathsThatACoordinatorMayNotNameAreRefusedAndTheServerStaysFree) {
  ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  overrides_ = {"pipeline.cuts=[layer1]", "pipeline.stages=1"};
  const auto refused = [this] { return Configure(LeaseOf("one"), 0, 1, &configured_); };
  change_ = [](Experiment* e) {
    DirectionConfig* gradients = e->mutable_compression()->mutable_gradients();
    gradients->set_codec("plugin");
    gradients->set_plugin("/dev/ptmx");
  };
  EXPECT_THAT(refused().error_message(), HasSubstr("codec plug-in ptmx: this server opens none"));
  change_ = [](Experiment* e) {
    e->mutable_compression()->mutable_gradients()->mutable_feedback()->set_dir("/etc");
  };
  EXPECT_THAT(
      refused().error_message(),
      HasSubstr("compression.gradients.feedback.dir: /etc leads to /etc, want a path below"));
  change_ = [](Experiment* e) { e->mutable_data()->set_dir("../../.."); };
  EXPECT_EQ(refused().error_code(), grpc::StatusCode::PERMISSION_DENIED);
  change_ = [](Experiment*) {};
  EXPECT_TRUE(refused().ok());
}

TEST_F(ServiceTest, AModelThatDoesNotFitIsRefusedBeforeAnyOfItIsTaken) {
  ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  overrides_ = {"model.width=65536"};
  const grpc::Status status = Configure(LeaseOf("one"), 0, 1, &configured_);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr("stage 0 takes about "));
  overrides_.clear();
  EXPECT_TRUE(Configure(LeaseOf("one"), 0, 1, &configured_).ok());
}

TEST_F(ServiceTest, ImportsUnderWayAreBoundedAndOneThatDoesNotBeginIsCancelled) {
  struct Import {
    grpc::ClientContext context;
    ImportParametersResponse response;
    std::unique_ptr<grpc::ClientWriter<ImportParametersRequest>> writer;
  };
  std::vector<Import> silent(4);
  for (Import& import : silent) {
    import.writer = stub_->ImportParameters(&import.context, &import.response);
  }
  // Those that came first may still be on their way.
  grpc::Status refused;
  for (int i = 0; i < 500 && refused.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED; ++i) {
    Import one;
    one.writer = stub_->ImportParameters(&one.context, &one.response);
    one.writer->WritesDone();
    refused = one.writer->Finish();
  }
  EXPECT_THAT(refused.error_message(), HasSubstr("4 calls that send files are under way"));
  for (Import& import : silent) {
    EXPECT_EQ(import.writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
}

TEST_F(ServiceTest, AStateThatWasCopiedIsReadOnceAndRestoredByWhoHoldsTheLease) {
  ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  ASSERT_TRUE(Configure(LeaseOf("one"), 0, 1, &configured_).ok());
  int steps = 0;
  ASSERT_TRUE(Train(LeaseOf("one"), configured_.train_samples(), &steps).ok());
  const std::string trained = Export(LeaseOf("one"));
  grpc::ClientContext taking;
  TakeSnapshotRequest request;
  *request.mutable_lease() = LeaseOf("one");
  request.set_codec_state(true);
  TakeSnapshotResponse taken;
  ASSERT_TRUE(stub_->TakeSnapshot(&taking, request, &taken).ok());
  ASSERT_GE(taken.files_size(), 1);
  EXPECT_EQ(taken.files(0).part().tensors(), "model");
  std::vector<std::string> files;
  for (int i = 0; i < taken.files_size(); ++i) {
    files.push_back(ReadSnapshot(i, grpc::StatusCode::OK));
    EXPECT_EQ(files.back().size(), taken.files(i).bytes());
  }
  EXPECT_EQ(files[0], trained);
  ReadSnapshot(0, grpc::StatusCode::NOT_FOUND);
  ASSERT_TRUE(Configure(LeaseOf("one"), 0, 1, &configured_).ok());
  ASSERT_NE(Export(LeaseOf("one")), trained);
  for (int i = 0; i < taken.files_size(); ++i) {
    const grpc::Status restored = Restore(LeaseOf("one"), taken.files(i).part(), files[i]);
    EXPECT_TRUE(restored.ok()) << restored.error_message();
  }
  EXPECT_EQ(Export(LeaseOf("one")), trained);
  Lease other = LeaseOf("one");
  other.set_secret("what nobody was told");
  EXPECT_EQ(Restore(other, taken.files(0).part(), files[0]).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  files[0].pop_back();
  EXPECT_THAT(Restore(LeaseOf("one"), taken.files(0).part(), files[0]).error_message(),
              HasSubstr("model: safetensors: the file ends 1 bytes before"));
}

TEST_F(ServiceTest, HealthServiceSaysServing) {
  // grpc.health.v1: an empty HealthCheckRequest asks for the server; status = 1 is SERVING.
  grpc::GenericStub stub(channel_);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const grpc::Slice nothing;
  const grpc::ByteBuffer request(&nothing, 1);
  auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", request, &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  ASSERT_TRUE(status.ok()) << status.error_message();
  grpc::Slice answer;
  ASSERT_TRUE(response.DumpToSingleSlice(&answer).ok());
  EXPECT_EQ(std::string(answer.begin(), answer.end()), std::string("\x08\x01"));
}

}  // namespace
}  // namespace thinwire
