#include "coordinator/serve/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "coordinator/serve/service.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr absl::Duration kPatience = absl::Seconds(30);

class CallQueueTest : public ::testing::Test {
 protected:
  CallQueueTest() {
    std::filesystem::remove_all(dir_);
    queue_ = *RunQueue::Open(dir_);
    service_ = std::make_unique<QueueService>(queue_.get(), QueueLimits{{}, dir_}, Security());
    server_ = *QueueServer::Start("127.0.0.1:0", service_.get(), Security());
  }
  ~CallQueueTest() override { queue_->Close(); }

  absl::Status List(const std::string& address, ListResponse* list) {
    return CallQueue(address, Security(), kPatience, &interruption_,
                     [&](Queue::Stub* stub, grpc::ClientContext* context) {
                       return stub->List(context, {}, list);
                     });
  }
  absl::Status Cancel(absl::Duration patience) {
    CancelRequest request;
    request.set_run("a-1");
    CancelResponse response;
    return CallQueue(server_->address(), Security(), patience, &interruption_,
                     [&](Queue::Stub* stub, grpc::ClientContext* context) {
                       return stub->Cancel(context, request, &response);
                     });
  }

  const std::string dir_ = ::testing::TempDir() + "/queue_client";
  Interruption interruption_;
  std::unique_ptr<RunQueue> queue_;
  std::unique_ptr<QueueService> service_;
  std::unique_ptr<QueueServer> server_;
};

TEST_F(CallQueueTest, CallsTheServer) {
  Experiment experiment;
  experiment.set_name("a");
  ASSERT_TRUE(queue_->Submit({experiment}).ok());
  ListResponse list;
  const absl::Status listed = List(server_->address(), &list);
  ASSERT_TRUE(listed.ok()) << listed;
  ASSERT_EQ(list.runs_size(), 1);
  EXPECT_EQ(list.runs(0).run(), "a-1");
}

TEST_F(CallQueueTest, WhatTheServerRefusesIsSaidAsItSaysIt) {
  const absl::Status refused = Cancel(kPatience);
  EXPECT_EQ(refused.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(refused.message()), StartsWith("unknown run \"a-1\""));
}

TEST_F(CallQueueTest, AServerThatIsNotThereIsNamed) {
  const std::string address = server_->address();
  server_.reset();
  ListResponse list;
  const absl::Status lost = List(address, &list);
  EXPECT_EQ(lost.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(lost.message()), StartsWith("server " + address + ": "));
}

TEST_F(CallQueueTest, ACallIsOverAfterItsPatience) {
  Experiment experiment;
  experiment.set_name("a");
  ASSERT_TRUE(queue_->Submit({experiment}).ok());
  ASSERT_TRUE(queue_->Begin("", {}).ok());  // it runs, and does not end
  const absl::Status over = Cancel(absl::Milliseconds(50));
  EXPECT_EQ(over.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(over.message()), HasSubstr(server_->address()));
}

}  // namespace
}  // namespace thinwire
