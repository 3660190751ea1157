#include "stage_server/swap/room.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

TEST(RoomTest, FreedRangesAreUsedAgain) {
  Room room;
  EXPECT_EQ(room.Take(3), 0u);
  EXPECT_EQ(room.Take(5), 3u);
  EXPECT_EQ(room.Take(2), 8u);
  room.Free(3, 5);
  EXPECT_EQ(room.Take(2), 3u);
  EXPECT_EQ(room.Take(3), 5u);
  EXPECT_EQ(room.end(), 10u);
}

TEST(RoomTest, NeighboursAreJoined) {
  Room room;
  for (int i = 0; i < 4; ++i) room.Take(2);
  room.Free(2, 2);
  room.Free(0, 2);
  room.Free(4, 2);
  EXPECT_EQ(room.Take(6), 0u);
  EXPECT_EQ(room.end(), 8u);
}

TEST(RoomTest, AFreeEndGrows) {
  Room room;
  room.Take(4);
  room.Take(2);
  room.Free(4, 2);
  EXPECT_EQ(room.Take(5), 4u);
  EXPECT_EQ(room.end(), 9u);
}

}  // namespace
}  // namespace thinwire
