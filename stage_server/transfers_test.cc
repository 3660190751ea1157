#include "stage_server/transfers.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/synchronization/notification.h"

namespace thinwire {
namespace {

TEST(TransfersTest, EachEndsAsItsClientDoesAndIsThenForgotten) {
  Transfers transfers;
  int cancels = 0;
  const auto cancel = [&] { ++cancels; };
  EXPECT_TRUE(transfers.Make([] { return true; }, cancel));
  EXPECT_FALSE(transfers.Make([] { return false; }, cancel));
  transfers.End();
  EXPECT_EQ(cancels, 0);
}

TEST(TransfersTest, TheEndCancelsThoseThatWaitAndLetsNoneBegin) {
  Transfers transfers;
  absl::Notification waits, cancelled;
  bool is_made = true;
  std::thread client([&] {
    is_made = transfers.Make(
        [&] {
          waits.Notify();
          cancelled.WaitForNotification();
          return false;
        },
        [&] { cancelled.Notify(); });
  });
  waits.WaitForNotification();
  transfers.End();
  client.join();
  EXPECT_FALSE(is_made);
  bool began = false;
  EXPECT_FALSE(transfers.Make([&] { return began = true; }, [] {}));
  EXPECT_FALSE(began);
}

}  // namespace
}  // namespace thinwire
