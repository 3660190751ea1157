#include "config/local_paths.h"

#include <filesystem>

#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(LocalPathsTest, EachMachinesPathsBeginAtItsRoot) {
  const std::string here = std::filesystem::current_path().string() + "/";
  Experiment e;
  e.set_init("models/a");
  e.mutable_lora()->set_init("runs/b/adapter");
  e.mutable_security()->set_token_file("token");
  e.mutable_data()->set_file("text.txt");
  e.mutable_data()->set_train("train_*.bin");
  e.mutable_data()->set_test("test.bin");
  e.mutable_compression()->mutable_gradients()->set_plugin("./libmine.so");
  ExchangedConfig& own = (*e.mutable_replicas()->mutable_stages())["head"];
  own.mutable_average()->set_plugin("libother.so");
  Experiment remote = e;
  MakeCoordinatorPathsAbsolute(&remote);
  EXPECT_EQ(remote.init(), here + "models/a");
  EXPECT_EQ(remote.lora().init(), here + "runs/b/adapter");
  EXPECT_EQ(remote.security().token_file(), here + "token");
  EXPECT_EQ(remote.data().file(), "text.txt");  // it is on another machine
  MakeStagePathsAbsolute(&e);
  EXPECT_EQ(e.data().file(), here + "text.txt");
  EXPECT_EQ(e.data().train(), here + "train_*.bin");
  EXPECT_EQ(e.data().test(), here + "test.bin");
  EXPECT_EQ(e.compression().gradients().plugin(), here + "libmine.so");
  EXPECT_EQ(e.replicas().stages().at("head").average().plugin(), here + "libother.so");
}

TEST(LocalPathsTest, InitIsAPathOfStagesThatReadItThemselves) {
  Experiment e;
  e.set_init("models/a");
  EXPECT_TRUE(StagePathsOf(&e).data.empty());
  e.set_init_at("stages");
  MakeCoordinatorPathsAbsolute(&e);
  EXPECT_EQ(e.init(), "models/a");
  ASSERT_EQ(StagePathsOf(&e).data.size(), 1u);
  EXPECT_EQ(StagePathsOf(&e).data[0].field, "init");
  MakeStagePathsAbsolute(&e);
  EXPECT_EQ(e.init(), std::filesystem::current_path().string() + "/models/a");
}

}  // namespace
}  // namespace thinwire
