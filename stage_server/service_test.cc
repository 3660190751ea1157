// Makes control calls over a real socket, as a coordinator makes them, in the right and in the
// wrong order.
#include "stage_server/service.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/steady_clock_id.h"
#include "base/steady_time.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "stage_server/service_testing.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

TEST_F(ServiceTest, AcquireTellsWhatTheServerIs) {
  ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  EXPECT_EQ(acquired_.metrics_address(), server_->metrics_address());
  EXPECT_GT(acquired_.cores(), 0u);
  EXPECT_FALSE(acquired_.build().build_id().empty());
  EXPECT_FALSE(acquired_.build().libraries().at("onednn").empty());
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

TEST_F(ServiceTest, AStageForTextsReadsNoDataAndTrainsNothing) {
  overrides_ = {"model={name: gpt2, layers: 1, heads: 1, width: 8}",
                "data={name: text, file: no/such, context: 8, tokens: bytes, batch_size: 2,"
                "limit: 0, test_limit: 0,"
                "corpus: {vocabulary: 256, train_tokens: 99, test_tokens: 99}}"};
  const Lease lease = LeaseOf("one");
  ASSERT_TRUE(Acquire(lease, &acquired_).ok());
  EXPECT_THAT(Configure(lease, 0, 1, &configured_).error_message(), HasSubstr("no/such"));
  generates_ = true;
  const grpc::Status configured = Configure(lease, 0, 1, &configured_);
  ASSERT_TRUE(configured.ok()) << configured.error_message();
  EXPECT_THAT(Generate(lease).error_message(), HasSubstr("ids: 0 from position 0"))
      << "it is asked";
  int steps = 0;
  for (const grpc::Status& status :
       {Train(lease, 12, &steps), Evaluate(lease, 12), Gradients(lease, 12, 1)}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_EQ(status.error_message(),
              "stage 0 was configured to generate, and so has read no data");
  }
}

TEST_F(ServiceTest, ConfiguresAndTrainsAndNamesWrongNumbers) {
  ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  EXPECT_THAT(Configure(LeaseOf("one"), 1, 1, &configured_).error_message(),
              HasSubstr("stage 1, want 0 to 0"));
  EXPECT_THAT(Configure(LeaseOf("one"), 0, 0, &configured_).error_message(),
              HasSubstr("threads: 0"));
  deal_ = {2};
  EXPECT_THAT(Configure(LeaseOf("one"), 0, 1, &configured_).error_message(),
              HasSubstr("deal: 2, want 1 numbers, zeros the last, that add up to 1"));
  deal_.clear();
  for (const std::vector<uint32_t>& wrong : {{0}, {2}, std::vector<uint32_t>{1, 1}}) {
    stage_carriers_ = wrong;
    EXPECT_THAT(Configure(LeaseOf("one"), 0, 1, &configured_).error_message(),
                HasSubstr("want one for each of 1 stages, 1 for this one"));
  }
  stage_carriers_.clear();
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

TEST_F(ServiceTest, ARenewalTellsTheClockThatSlicesAreOn) {
  const Lease lease = LeaseOf("one");
  ASSERT_TRUE(Acquire(lease, &acquired_).ok());
  const int64_t before = SteadyTime::Now().nanoseconds();
  const RenewResponse answer = Renew(lease);
  EXPECT_GE(answer.steady_nanoseconds(), before);
  EXPECT_LE(answer.steady_nanoseconds(), SteadyTime::Now().nanoseconds());
  EXPECT_EQ(answer.clock(), SteadyClockId());
}

TEST_F(ServiceTest, TrainingReportsTheSlicesOfTheStepsThatAreTraced) {
  const Lease lease = LeaseOf("one");
  ASSERT_TRUE(Acquire(lease, &acquired_).ok());
  trace_.emplace();
  EXPECT_EQ(Configure(lease, 0, 1, &configured_).error_message(),
            "trace: steps 0 to 0, want steps from 1 in ascending order");
  trace_->set_first(2);
  trace_->set_last(9);
  ASSERT_TRUE(Configure(lease, 0, 1, &configured_).ok());
  const int64_t before = SteadyTime::Now().nanoseconds();
  int steps = 0;
  ASSERT_TRUE(Train(lease, 40, &steps).ok());
  std::vector<std::string> names;
  for (const TraceSlice& slice : traced_.slices()) {
    EXPECT_EQ(slice.step(), 2u);
    EXPECT_GT(slice.begin(), before);
    EXPECT_LE(slice.begin(), slice.end());
    names.push_back(slice.name());
  }
  EXPECT_THAT(names, UnorderedElementsAre("data", "forward", "forward loss", "backward",
                                          "optimizer", "step"));
  traced_.Clear();
  ASSERT_TRUE(Evaluate(lease, 20).ok());
  steps = 0;
  trace_.reset();
  ASSERT_TRUE(Configure(lease, 0, 1, &configured_).ok());
  ASSERT_TRUE(Train(lease, 40, &steps).ok());
  EXPECT_EQ(traced_.slices_size(), 0);
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
  // The codec's input was the difference to the state, not the tensor.
  EXPECT_NEAR(coded.codec_relative_error() * coded.relative_residual(), 2 * coded.relative_error(),
              0.3 * coded.relative_error());
  EXPECT_GT(coded.codec_relative_error(), 0.01);
  EXPECT_LT(coded.cosine(), 1);
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

// Accepts connections and sends nothing.
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

TEST_F(ServiceTest, HealthServiceSaysServing) {
  // grpc.health.v1: an empty HealthCheckRequest asks about the server; status = 1 means SERVING.
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
