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

class QueueClientTest : public ::testing::Test {
 protected:
  QueueClientTest() {
    std::filesystem::remove_all(dir_);
    queue_ = *RunQueue::Open(dir_);
    service_ = std::make_unique<QueueService>(queue_.get(), QueueLimits{{}, dir_}, Security());
    server_ = *QueueServer::Start("127.0.0.1:0", service_.get(), Security());
  }
  ~QueueClientTest() override { queue_->Close(); }

  static absl::Status List(QueueClient* client, ListResponse* list) {
    return client->Call(kPatience, [&](Queue::Stub* stub, grpc::ClientContext* context) {
      return stub->List(context, {}, list);
    });
  }
  static absl::Status Cancel(QueueClient* client, absl::Duration patience) {
    CancelRequest request;
    request.set_run("a-1");
    CancelResponse response;
    return client->Call(patience, [&](Queue::Stub* stub, grpc::ClientContext* context) {
      return stub->Cancel(context, request, &response);
    });
  }

  const std::string dir_ = ::testing::TempDir() + "/queue_client";
  Interruption interruption_;
  std::unique_ptr<RunQueue> queue_;
  std::unique_ptr<QueueService> service_;
  std::unique_ptr<QueueServer> server_;
};

TEST_F(QueueClientTest, CallsTheServer) {
  Experiment experiment;
  experiment.set_name("a");
  ASSERT_TRUE(queue_->Submit({experiment}).ok());
  QueueClient client(server_->address(), Security(), &interruption_);
  ListResponse list;
  const absl::Status listed = List(&client, &list);
  ASSERT_TRUE(listed.ok()) << listed;
  ASSERT_EQ(list.runs_size(), 1);
  EXPECT_EQ(list.runs(0).run(), "a-1");
}

TEST_F(QueueClientTest, WhatTheServerRefusesIsSaidAsItSaysIt) {
  QueueClient client(server_->address(), Security(), &interruption_);
  const absl::Status refused = Cancel(&client, kPatience);
  EXPECT_EQ(refused.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(refused.message()), StartsWith("unknown run \"a-1\""));
}

TEST_F(QueueClientTest, AServerThatIsNotThereIsNamed) {
  const std::string address = server_->address();
  server_.reset();
  QueueClient client(address, Security(), &interruption_);
  ListResponse list;
  const absl::Status lost = List(&client, &list);
  EXPECT_EQ(lost.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(lost.message()), StartsWith("server " + address + ": "));
}

TEST_F(QueueClientTest, ACallIsOverAfterItsPatience) {
  Experiment experiment;
  experiment.set_name("a");
  ASSERT_TRUE(queue_->Submit({experiment}).ok());
  ASSERT_TRUE(queue_->Begin("", {}).ok());  // it runs, and does not end
  QueueClient client(server_->address(), Security(), &interruption_);
  const absl::Status over = Cancel(&client, absl::Milliseconds(50));
  EXPECT_EQ(over.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(over.message()), HasSubstr(server_->address()));
}

}  // namespace
}  // namespace thinwire
