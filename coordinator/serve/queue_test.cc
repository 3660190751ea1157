#include "coordinator/serve/queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "config/experiment.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

Experiment Named(const std::string& name) {
  const auto experiment =
      ParseExperiment("name: " + name +
                          "\nmodel: {name: resnet8, width: 4}\ndata: {name: digits}\n"
                          "pipeline: {cuts: [layer1]}\noptimizer: {lr: 0.1}\nepochs: 2\n",
                      "e.yaml", {});
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  return *experiment;
}

class QueueTest : public ::testing::Test {
 protected:
  QueueTest() {
    std::filesystem::remove_all(dir_);
    Reopen();
  }
  // Opens the queue again, like the server after a killed one.
  void Reopen() {
    queue_.reset();
    auto queue = RunQueue::Open(dir_);
    ASSERT_TRUE(queue.ok()) << queue.status();
    queue_ = *std::move(queue);
  }
  std::string Submit(const std::string& name) {
    const auto ids = queue_->Submit({Named(name)});
    EXPECT_TRUE(ids.ok()) << ids.status();
    return ids->front();
  }
  // Returns the run that begins; "" if none does.
  std::string Begin(const std::string& group = "", const std::vector<std::string>& groups = {}) {
    const auto begun = queue_->Begin(group, groups);
    EXPECT_TRUE(begun.ok()) << begun.status();
    return *begun ? (*begun)->run() : "";
  }
  std::string States() const {
    std::string text;
    for (const QueuedRunStatus& run : queue_->List()) {
      absl::StrAppend(&text, text.empty() ? "" : ", ", run.run(), " ", run.state());
    }
    return text;
  }

  const std::string dir_ = ::testing::TempDir() + "/queue_test";
  std::unique_ptr<RunQueue> queue_;
};

TEST_F(QueueTest, RunsBeginInTheOrderInWhichTheyCame) {
  EXPECT_THAT(*queue_->Submit({Named("b"), Named("a")}), ElementsAre("b-1", "a-2"));
  EXPECT_EQ(Submit("b"), "b-3");
  EXPECT_EQ(Begin(), "b-1");
  EXPECT_EQ(Begin(), "a-2");
  EXPECT_EQ(States(), "b-1 runs, a-2 runs, b-3 waits");
  EXPECT_EQ(queue_->Find("b-3")->progress(), "0 before it");
  EXPECT_EQ(Begin(), "b-3");
  EXPECT_EQ(Begin(), "");
}

TEST_F(QueueTest, NothingThatWasAcceptedIsLostWithTheServer) {
  for (const char* name : {"a", "b", "c", "d"}) Submit(name);
  Begin();
  RunEnd end;
  end.test.emplace().mutable_compressed()->set_accuracy(0.5);
  ASSERT_TRUE(queue_->End("a-1", end).ok());
  ASSERT_TRUE(queue_->Cancel("c-3").ok());
  EXPECT_EQ(Begin(), "b-2");
  EXPECT_EQ(States(), "a-1 done, b-2 runs, c-3 cancelled, d-4 waits");
  EXPECT_THAT(queue_->Count(),
              UnorderedElementsAre(Pair("waits", 1), Pair("runs", 1), Pair("done", 1),
                                   Pair("failed", 0), Pair("cancelled", 1)));
  Reopen();
  EXPECT_EQ(States(), "a-1 done, b-2 waits, c-3 cancelled, d-4 waits");
  EXPECT_EQ(queue_->Find("a-1")->test().compressed().accuracy(), 0.5);
  EXPECT_EQ(Submit("e"), "e-5");
  const auto again = queue_->Begin("", {});
  ASSERT_TRUE(again.ok() && *again);
  EXPECT_EQ((*again)->run(), "b-2");
  EXPECT_EQ((*again)->experiment(), ToYaml(Named("b")));
}

TEST_F(QueueTest, ARunThatWasToBeInterruptedDoesNotGoOnWithTheNextServer) {
  Submit("a");
  Begin();
  ASSERT_TRUE(queue_->Cancel("a-1").ok());
  EXPECT_EQ(States(), "a-1 runs");
  EXPECT_TRUE(queue_->IsCancelled("a-1"));
  Reopen();
  EXPECT_EQ(States(), "a-1 cancelled");
  EXPECT_EQ(queue_->Find("a-1")->exit_code(), 130);
}

TEST_F(QueueTest, ACancelledRunThatWasDoneFirstIsDone) {
  Submit("a");
  Begin();
  ASSERT_TRUE(queue_->Cancel("a-1").ok());
  ASSERT_TRUE(queue_->End("a-1", {}).ok());
  EXPECT_EQ(States(), "a-1 done");
  ASSERT_TRUE(queue_->Cancel("a-1").ok());
  EXPECT_EQ(States(), "a-1 done");
}

TEST_F(QueueTest, ARunGoesOnWithTheServersThatItHad) {
  const std::vector<std::string> groups = {"a:1", "b:1"};
  Submit("a");
  Submit("b");
  Submit("c");
  EXPECT_EQ(Begin("b:1", groups), "a-1");
  Reopen();
  EXPECT_EQ(Begin("a:1", groups), "b-2");
  EXPECT_EQ(Begin("b:1", groups), "a-1");
  Reopen();
  EXPECT_EQ(Begin("c:1", {"c:1"}), "a-1") << "the servers that it had are there no more";
}

TEST_F(QueueTest, AnUnknownRunIsAnsweredWithTheNearest) {
  EXPECT_EQ(std::string(queue_->Find("a-1").status().message()),
            "unknown run \"a-1\"; the queue has none");
  Submit("digits");
  EXPECT_EQ(queue_->Cancel("digit-1"),
            absl::NotFoundError("unknown run \"digit-1\"; nearest is \"digits-1\""));
}

TEST_F(QueueTest, AFailureSaysWhyAndAHeldQueueToo) {
  Submit("a");
  Submit("b");
  queue_->Hold("no room");
  EXPECT_EQ(queue_->Find("b-2")->progress(), "no room");
  queue_->Hold("");
  EXPECT_EQ(queue_->Find("b-2")->progress(), "1 before it");
  Begin();
  ASSERT_TRUE(queue_->End("a-1", {1, "stage 0: no memory", {}}).ok());
  EXPECT_EQ(States(), "a-1 failed, b-2 waits");
  EXPECT_EQ(queue_->Find("a-1")->error(), "stage 0: no memory");
  EXPECT_EQ(queue_->Find("a-1")->exit_code(), 1);
}

TEST_F(QueueTest, ASuspendedRunWaits) {
  Submit("a");
  Begin();
  queue_->Suspend("a-1");
  EXPECT_EQ(States(), "a-1 waits");
}

TEST_F(QueueTest, WhatCannotBeWrittenIsNotAccepted) {
  Submit("a");
  // A file cannot replace a folder, so writing fails.
  std::filesystem::create_directories(dir_ + "/queue/c-3.json/x");
  const auto refused = queue_->Submit({Named("b"), Named("c")});
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("/queue/c-3.json"));
  EXPECT_EQ(States(), "a-1 waits");
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/queue/b-2.json"));
}

TEST_F(QueueTest, TheNumberOfAFolderThatIsThereIsNotTakenAgain) {
  std::filesystem::create_directories(dir_ + "/runs/a-1");
  EXPECT_EQ(Submit("a"), "a-2");
}

TEST_F(QueueTest, ADamagedFileIsNamedAndAHalfWrittenOneIsNone) {
  std::ofstream(dir_ + "/queue/a-1.json.tmp") << "{";
  Reopen();
  EXPECT_EQ(States(), "");
  std::ofstream(dir_ + "/queue/a-1.json") << "{";
  const absl::Status damaged = RunQueue::Open(dir_).status();
  EXPECT_EQ(damaged.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(damaged.message()), HasSubstr("/queue/a-1.json: is no QueueEntry"));
  std::ofstream(dir_ + "/queue/a-1.json") << R"({"run": "b-1"})";
  EXPECT_THAT(std::string(RunQueue::Open(dir_).status().message()), HasSubstr("is of run \"b-1\""));
}

TEST_F(QueueTest, WhoWaitsForAnEndIsToldOfItOrOfTheServers) {
  Submit("a");
  EXPECT_FALSE(queue_->AwaitEnd("a-1", absl::ZeroDuration()));
  ASSERT_TRUE(queue_->Cancel("a-1").ok());
  EXPECT_TRUE(queue_->AwaitEnd("a-1", absl::InfiniteDuration()));
  Submit("b");
  queue_->Close();
  EXPECT_FALSE(queue_->AwaitEnd("b-2", absl::InfiniteDuration()));
}

}  // namespace
}  // namespace thinwire
