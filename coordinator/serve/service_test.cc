#include "coordinator/serve/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kExperiment[] =
    "name: a\nmodel: {name: resnet8, width: 4}\ndata: {name: digits}\n"
    "pipeline: {cuts: [layer1]}\noptimizer: {lr: 0.1}\nepochs: 2\n";

// The service over a real connection; the test plays the queue's loop.
class ServiceTest : public ::testing::Test {
 protected:
  ServiceTest() { std::filesystem::remove_all(dir_); }
  ~ServiceTest() override {
    if (queue_) queue_->Close();
    if (server_) server_->Shutdown();
  }

  void Serve(QueueLimits limits) {
    limits.dir = dir_;
    auto queue = RunQueue::Open(dir_);
    ASSERT_TRUE(queue.ok()) << queue.status();
    queue_ = *std::move(queue);
    service_ = std::make_unique<QueueService>(queue_.get(), limits, Security());
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    stub_ = Queue::NewStub(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
  }
  grpc::Status Submit(const std::vector<std::string>& texts,
                      const std::vector<std::string>& overrides = {}) {
    SubmitRequest request;
    for (const std::string& text : texts) {
      SubmitRequest::File* file = request.add_experiments();
      file->set_name("mine.yaml");
      file->set_text(text);
    }
    for (const std::string& override_text : overrides) request.add_overrides(override_text);
    grpc::ClientContext context;
    submitted_.Clear();
    return stub_->Submit(&context, request, &submitted_);
  }
  size_t Listed() {
    grpc::ClientContext context;
    ListResponse list;
    EXPECT_TRUE(stub_->List(&context, {}, &list).ok());
    return static_cast<size_t>(list.runs_size());
  }
  // Returns the texts of a watch, and the final state.
  std::string Watched(const std::string& run) {
    grpc::ClientContext context;
    WatchRequest request;
    request.set_run(run);
    const auto reader = stub_->Watch(&context, request);
    std::string all;
    for (WatchEvent event; reader->Read(&event);) {
      absl::StrAppend(&all, event.has_end() ? event.end().state() : event.text());
    }
    const grpc::Status status = reader->Finish();
    return status.ok() ? all : status.error_message();
  }

  const std::string dir_ = ::testing::TempDir() + "/service_test";
  std::unique_ptr<RunQueue> queue_;
  std::unique_ptr<QueueService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Queue::Stub> stub_;
  SubmitResponse submitted_;
};

TEST_F(ServiceTest, ExperimentsAreTakenWithTheirOverrides) {
  Serve({});
  ASSERT_TRUE(Submit({kExperiment, kExperiment}, {"epochs=7"}).ok());
  EXPECT_THAT(submitted_.runs(), ElementsAre("a-1", "a-2"));
  const auto begun = queue_->Begin("", {});
  ASSERT_TRUE(begun.ok() && *begun);
  EXPECT_EQ((*begun)->epochs(), 7u);
}

TEST_F(ServiceTest, OneThatIsWrongIsNamedAndNoneIsTaken) {
  Serve({});
  const grpc::Status refused = Submit({kExperiment, std::string(kExperiment) + "epoch: 3\n"});
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), StartsWith("mine.yaml:7: "));
  EXPECT_THAT(refused.error_message(), HasSubstr("epochs"));
  EXPECT_THAT(Submit({kExperiment}, {"epochs=none"}).error_message(), HasSubstr("epochs=none"));
  EXPECT_THAT(Submit({"name: \xFF\n"}).error_message(), HasSubstr("malformed UTF-8"));
  EXPECT_THAT(Submit({}).error_message(), HasSubstr("no experiment"));
  EXPECT_EQ(Listed(), 0u);
}

TEST_F(ServiceTest, AnExperimentMustFitTheServersStages) {
  QueueLimits limits;
  limits.groups = {"a:1,b:1,c:1", "d{1..3}:1"};
  Serve(limits);
  EXPECT_THAT(Submit({kExperiment}).error_message(), HasSubstr("pipeline.stages"));
  EXPECT_TRUE(Submit({kExperiment}, {"pipeline.cuts=[stem, layer1]"}).ok());
  EXPECT_TRUE(Submit({kExperiment}, {"pipeline.stages=2"}).ok()) << "the third is a spare";
  EXPECT_EQ(Listed(), 2u);
}

TEST_F(ServiceTest, AFullDiskTakesNothing) {
  QueueLimits limits;
  limits.least_free_bytes = uint64_t{1} << 62;
  Serve(limits);
  const grpc::Status refused = Submit({kExperiment});
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr(dir_ + ": the disk has room for"));
  EXPECT_EQ(Listed(), 0u);
}

TEST_F(ServiceTest, AWatchSeesAllThatARunPrintsAndItsEnd) {
  Serve({});
  ASSERT_TRUE(Submit({kExperiment}).ok());
  ASSERT_TRUE(queue_->Begin("", {}).ok());
  std::ofstream log(queue_->LogOf("a-1"));
  log << "one\n" << std::string(100000, 'x') << "\nlast" << std::flush;
  std::thread run([this] { EXPECT_TRUE(queue_->End("a-1", {1, "no memory", {}}).ok()); });
  EXPECT_EQ(Watched("a-1"), "one\n" + std::string(100000, 'x') + "\nlastfailed");
  run.join();
  EXPECT_EQ(Watched("b-1"), "unknown run \"b-1\"; nearest is \"a-1\"");
}

TEST_F(ServiceTest, AWatchOfARunThatWaitsEndsWithIt) {
  Serve({});
  ASSERT_TRUE(Submit({kExperiment, kExperiment}).ok());
  std::string watched;
  std::thread watcher([&] { watched = Watched("a-2"); });
  grpc::ClientContext context;
  CancelRequest request;
  request.set_run("a-2");
  CancelResponse response;
  ASSERT_TRUE(stub_->Cancel(&context, request, &response).ok());
  watcher.join();
  EXPECT_EQ(response.run().state(), "cancelled");
  EXPECT_THAT(watched, HasSubstr("cancelled"));
}

TEST_F(ServiceTest, CallsThatWaitEndWithTheServer) {
  Serve({});
  ASSERT_TRUE(Submit({kExperiment}).ok());
  ASSERT_TRUE(queue_->Begin("", {}).ok());
  std::thread closer([this] { queue_->Close(); });
  EXPECT_EQ(Watched("a-1"), "the server ends; the queue is kept");
  grpc::ClientContext context;
  CancelRequest request;
  request.set_run("a-1");
  CancelResponse response;
  EXPECT_EQ(stub_->Cancel(&context, request, &response).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  closer.join();
}

}  // namespace
}  // namespace thinwire
