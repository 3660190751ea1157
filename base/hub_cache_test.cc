#include "base/hub_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/path.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kCommit(40, 'a'), kOther(40, '7');

// A cache as the hub's programs fill it: a model with two commits, of which `main` is the first.
class HubCacheTest : public ::testing::Test {
 protected:
  HubCacheTest() {
    for (const char* const name :
         {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME"}) {
      unsetenv(name);
    }
    fs::remove_all(root_);
    for (const std::string& commit : {kCommit, kOther}) {
      fs::create_directories(model_ + "/snapshots/" + commit);
    }
    fs::create_directories(model_ + "/refs/pr");
    fs::create_directories(model_ + "/blobs");
    std::ofstream(model_ + "/blobs/1234") << "{}";
    fs::create_symlink("../../blobs/1234", model_ + "/snapshots/" + kCommit + "/config.json");
    std::ofstream(model_ + "/refs/main") << kCommit;
    std::ofstream(model_ + "/refs/pr/1") << kOther << "\n";
    setenv("HF_HUB_CACHE", cache_.c_str(), 1);
  }
  ~HubCacheTest() override {
    unsetenv("HF_HUB_CACHE");
    fs::remove_all(root_);
  }
  static std::string Refusal(const std::string& id) {
    return std::string(HubFolder(id).status().message());
  }
  std::string Snapshot(const std::string& commit) const { return model_ + "/snapshots/" + commit; }

  const std::string root_ = ::testing::TempDir() + "/hub_cache", cache_ = root_ + "/hub",
                    model_ = cache_ + "/models--Ada--small-1.5";
};

TEST_F(HubCacheTest, ANameIsTheSnapshotOfItsRevision) {
  EXPECT_EQ(*HubFolder("hf:Ada/small-1.5"), Snapshot(kCommit));
  EXPECT_TRUE(fs::exists(*HubFolder("hf:Ada/small-1.5") + "/config.json"));
  EXPECT_EQ(*HubFolder("hf:Ada/small-1.5@main"), Snapshot(kCommit));
  EXPECT_EQ(*HubFolder("hf:Ada/small-1.5@pr/1"), Snapshot(kOther));
  EXPECT_EQ(*HubFolder("hf:Ada/small-1.5@" + kOther), Snapshot(kOther));
}

TEST_F(HubCacheTest, TheCacheIsWhereTheHubsProgramsHaveIt) {
  unsetenv("HF_HUB_CACHE");
  const auto at = [this](const char* variable, const std::string& value, const char* below) {
    setenv(variable, value.c_str(), 1);
    const std::string there = value + below;
    fs::create_directories(fs::path(there).parent_path());
    if (there != cache_) fs::create_directory_symlink(cache_, there);
    EXPECT_EQ(*HubFolder("hf:Ada/small-1.5"),
              there + "/models--Ada--small-1.5/snapshots/" + kCommit)
        << variable;
  };
  at("HOME", root_ + "/home", "/.cache/huggingface/hub");
  at("XDG_CACHE_HOME", root_ + "/xdg", "/huggingface/hub");
  at("HF_HOME", root_ + "/hf", "/hub");
  at("HUGGINGFACE_HUB_CACHE", root_ + "/old", "");
  at("HF_HUB_CACHE", cache_, "");
}

TEST_F(HubCacheTest, AMissSaysWhatDownloadsIt) {
  EXPECT_EQ(Refusal("hf:Ada/none"), "hf:Ada/none: is not in the cache " + cache_ +
                                        "; this downloads it: hf download Ada/none");
  EXPECT_THAT(Refusal("hf:Ada/small-1.5@v2"), HasSubstr("hf download Ada/small-1.5 --revision v2"));
  fs::remove_all(Snapshot(kCommit));
  EXPECT_THAT(Refusal("hf:Ada/small-1.5"), HasSubstr("is not in the cache"));
  std::ofstream(model_ + "/refs/main") << "gone";
  EXPECT_THAT(Refusal("hf:Ada/small-1.5"), HasSubstr("refs/main: is gone, want a commit"));
  fs::remove(model_ + "/refs/main");
  fs::create_directories(model_ + "/refs/main");  // as little readable as a file of others
  EXPECT_THAT(Refusal("hf:Ada/small-1.5"), HasSubstr("refs/main"));
  EXPECT_THAT(Refusal("hf:Ada/small-1.5"), Not(HasSubstr("is not in the cache")));
}

TEST_F(HubCacheTest, WhatIsNoNameIsRefused) {
  for (const char* const id : {"hf:", "hf:/", "hf:a/b/c", "hf:../x", "hf:a/..", "hf:a b/c", "a/b",
                               "hf:a/b@", "hf:a/b@../../x", "hf:a/.git"}) {
    EXPECT_THAT(Refusal(id), HasSubstr("want hf:ORG/NAME or hf:ORG/NAME@REVISION")) << id;
  }
}

TEST_F(HubCacheTest, AFolderIsCalledByItsCommit) {
  EXPECT_EQ(HubIdOr(Snapshot(kCommit)), "hf:Ada/small-1.5@" + kCommit);
  EXPECT_EQ(*HubFolder(HubIdOr(Snapshot(kOther))), Snapshot(kOther));
  EXPECT_EQ(HubIdOr(cache_), cache_);
  EXPECT_EQ(HubIdOr("snapshots/" + kCommit), "snapshots/" + kCommit);
  const std::string elsewhere = root_ + "/other/models--Ada--small-1.5/snapshots/" + kCommit;
  EXPECT_EQ(HubIdOr(elsewhere), elsewhere);
  fs::create_directories(elsewhere);
  EXPECT_EQ(HubIdOr(elsewhere), elsewhere) << "this machine's cache has it, but of another folder";
}

TEST_F(HubCacheTest, OtherPathsStay) {
  EXPECT_EQ(*HubFolderOr("models/a"), "models/a");
  EXPECT_EQ(*HubFolderOr("hf:Ada/small-1.5"), Snapshot(kCommit));
  EXPECT_EQ(AbsolutePath("hf:Ada/small-1.5"), "hf:Ada/small-1.5");
}

}  // namespace
}  // namespace thinwire
