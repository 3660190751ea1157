#include "coordinator/checkpoint/manifest.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

CheckpointFile File(const std::string& name) {
  CheckpointFile file;
  file.set_name(name);
  file.set_sha256(std::string(64, 'a'));
  return file;
}

CheckpointManifest Manifest() {
  CheckpointManifest manifest;
  manifest.set_format(kManifestFormat);
  manifest.set_step(12);
  manifest.set_epoch(2);
  manifest.set_steps_per_epoch(10);
  manifest.mutable_progress()->mutable_epochs_kept();
  CheckpointFile model = File("model-00001-of-00001.safetensors");
  model.set_tensors("model");
  CheckpointFile end = File("cut-layer1-activation-sender.bin");
  end.set_cut("layer1");
  end.set_direction("activation");
  end.set_end("sender");
  end.mutable_level()->set_level(0.1);
  *manifest.add_files() = model;
  *manifest.add_files() = end;
  return manifest;
}

// Returns the error, after the path, for Manifest() with `change` made to its JSON.
std::string ErrorOf(const std::function<void(Json*)>& change) {
  Json json = Json::parse(ManifestText(Manifest()));
  change(&json);
  const absl::Status status = ParseManifest(json.dump(), "m.json").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), StartsWith("m.json: "));
  return std::string(status.message()).substr(8);
}

std::string ErrorOfFile(const char* field, const Json& value) {
  return ErrorOf([&](Json* json) { (*json)["files"][0][field] = value; });
}

TEST(ManifestTest, IsReadAsItWasWritten) {
  CheckpointManifest manifest = Manifest();
  manifest.set_step(uint64_t{1} << 63);
  RunProgress* const progress = manifest.mutable_progress();
  progress->mutable_sums()->set_loss(0.1 + 0.2);
  progress->set_metrics_bytes(std::numeric_limits<uint64_t>::max());
  progress->mutable_epochs_kept()->set_crc32c(std::numeric_limits<uint32_t>::max());
  progress->add_events()->set_error("\"stage 1\":\n\tgone");
  progress->add_before_epoch()->mutable_gradients()->set_causal(false);
  const auto read = ParseManifest(ManifestText(manifest), "m.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->SerializeAsString(), manifest.SerializeAsString());
}

TEST(ManifestTest, ALossThatIsNoNumberStaysOne) {
  CheckpointManifest manifest = Manifest();
  const double infinity = std::numeric_limits<double>::infinity();
  manifest.mutable_progress()->mutable_sums()->set_loss(std::nan(""));
  manifest.mutable_progress()->mutable_sums()->set_lr(-infinity);
  manifest.mutable_progress()->set_training_seconds(infinity);
  const auto read = ParseManifest(ManifestText(manifest), "m.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(std::isnan(read->progress().sums().loss()));
  EXPECT_EQ(read->progress().sums().lr(), -infinity);
  EXPECT_EQ(read->progress().training_seconds(), infinity);
}

TEST(ManifestTest, HasTheFieldsNamesAndNumbers) {
  const Json json = Json::parse(ManifestText(Manifest()));
  EXPECT_EQ(json["steps_per_epoch"], 10);
  EXPECT_EQ(json["files"][1]["level"]["level"], 0.1);
  EXPECT_TRUE(json["files"][0]["level"].is_null());
}

TEST(ManifestTest, WhatIsNoJsonIsRefused) {
  const std::string whole = ManifestText(Manifest());
  for (const std::string& text : {std::string(), std::string("\0\0\0", 3), std::string("[]"),
                                  whole.substr(0, whole.size() / 2), whole + "x"}) {
    const absl::Status status = ParseManifest(text, "m.json").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << text;
    EXPECT_THAT(std::string(status.message()), StartsWith("m.json: ")) << text;
  }
}

TEST(ManifestTest, FieldsAreKnownAndOfTheirType) {
  EXPECT_THAT(ErrorOf([](Json* json) { (*json)["colour"] = "red"; }), HasSubstr("colour"));
  EXPECT_THAT(ErrorOf([](Json* json) { (*json)["step"] = "twelve"; }), HasSubstr("step"));
  EXPECT_THAT(ErrorOf([](Json* json) { (*json)["step"] = -1; }), HasSubstr("step"));
  EXPECT_THAT(ErrorOf([](Json* json) { (*json)["files"][0]["name"] = Json::array(); }),
              HasSubstr("name"));
}

TEST(ManifestTest, TheFormatBeforeHasTheEpochsThemselves) {
  CheckpointManifest manifest = Manifest();
  manifest.set_format(kFormatWithEpochs);
  manifest.mutable_progress()->clear_epochs_kept();
  manifest.mutable_progress()->add_epochs()->mutable_train()->set_loss(1e-300);
  const auto read = ParseManifest(ManifestText(manifest), "m.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->SerializeAsString(), manifest.SerializeAsString());
  EXPECT_EQ(ErrorOf([](Json* json) { (*json)["progress"]["epochs"] = {Json::object()}; }),
            "progress: 1 epochs, want none but epochs_kept in format 2");
  EXPECT_EQ(ErrorOf([](Json* json) { (*json)["progress"].erase("epochs_kept"); }),
            "progress: 0 epochs, want none but epochs_kept in format 2");
}

TEST(ManifestTest, AnotherFormatAndCountsOfNothingAreRefused) {
  EXPECT_EQ(ErrorOf([](Json* json) { (*json)["format"] = 3; }), "format: 3, want 1 or 2");
  for (const std::string field : {"step", "epoch", "steps_per_epoch"}) {
    EXPECT_EQ(ErrorOf([&](Json* json) { json->erase(field); }), field + ": 0, want at least 1");
  }
}

TEST(ManifestTest, NamesStayInTheFolder) {
  for (const std::string& name :
       {std::string("../x"), std::string("/x"), std::string("a/b"), std::string("."),
        std::string(".."), std::string(), std::string("a\0b", 3), std::string(300, 'x')}) {
    EXPECT_THAT(ErrorOfFile("name", name), HasSubstr("\": want the name of a file")) << name;
  }
  EXPECT_EQ(ErrorOfFile("name", "../x"),
            "files: \"../x\": want the name of a file in the checkpoint's folder");
  for (const char* name : {"manifest.json", "model.safetensors.index.json"}) {
    EXPECT_THAT(ErrorOfFile("name", name), HasSubstr("is the checkpoint's own")) << name;
  }
}

TEST(ManifestTest, ANameComesOnce) {
  EXPECT_EQ(ErrorOf([](Json* json) { (*json)["files"][1]["name"] = (*json)["files"][0]["name"]; }),
            "files: \"model-00001-of-00001.safetensors\": comes twice");
}

TEST(ManifestTest, ADigestHasItsDigits) {
  for (const std::string& digest :
       {std::string(), std::string(63, 'a'), std::string(64, 'A'), std::string(64, 'g')}) {
    EXPECT_THAT(ErrorOfFile("sha256", digest), HasSubstr("want 64 hexadecimal digits")) << digest;
  }
}

TEST(ManifestTest, AFileIsOfTensorsOrOfTheEndOfACut) {
  EXPECT_THAT(ErrorOfFile("tensors", ""), HasSubstr("want either tensors or a cut"));
  EXPECT_THAT(ErrorOfFile("cut", "layer1"), HasSubstr("want either tensors or a cut"));
  EXPECT_THAT(ErrorOfFile("end", "sender"), HasSubstr("tensors with a direction"));
  EXPECT_THAT(ErrorOf([](Json* json) { (*json)["files"][1]["direction"] = "up"; }),
              HasSubstr("direction: \"up\", want activation or gradient"));
  EXPECT_THAT(ErrorOf([](Json* json) { (*json)["files"][1].erase("end"); }),
              HasSubstr("end: \"\", want sender or receiver"));
}

TEST(ManifestTest, DepthAndSizeAreBounded) {
  const std::string deep(size_t{1} << 20, '[');
  EXPECT_FALSE(ParseManifest("{\"files\":" + deep, "m.json").ok());
  EXPECT_THAT(
      std::string(
          ParseManifest(std::string(kMaxManifestBytes + 1, ' '), "m.json").status().message()),
      HasSubstr("more than 67108864 bytes"));
}

}  // namespace
}  // namespace thinwire
