// Runs that begin from a folder, and the frozen part of it that their checkpoints leave out.
#include "coordinator/run/initial.h"

#include <filesystem>
#include <memory>
#include <utility>

#include "base/sha256.h"
#include "base/tensor_file.h"
#include "config/experiment.h"
#include "coordinator/checkpoint/folder.h"
#include "coordinator/run/restore.h"
#include "coordinator/run/run_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kExperiment[] = R"(
model:
  name: custom
  blocks:
    - {name: a, layers: [{kind: flatten}, {kind: linear, name: fc, out: 1, bias: false}]}
    - {name: b, layers: [{kind: linear, name: fc, out: 10, bias: false}]}
data: {name: digits, batch_size: 3}
pipeline: {cuts: [a]}
freeze: [a]
optimizer: {lr: 0.1}
checkpoint: {keep: 10}
epochs: 1
)";

std::string FileOf(const std::string& name, std::vector<int64_t> shape, const std::string& data) {
  std::string file;
  const auto append = [&file](std::string_view piece) {
    file += piece;
    return absl::OkStatus();
  };
  EXPECT_TRUE(WriteSafetensors({{}, {{name, "F32", std::move(shape), data}}}, 100, append).ok());
  return file;
}

// The first stage has the frozen block, the second one the trained block.
class InitialTest : public RunTest {
 protected:
  InitialTest() {
    fs::remove_all(root_);
    fs::create_directories(init_);
    WriteInit(frozen_);
    experiment_ = *ParseExperiment(kExperiment, "test", {"init=" + init_});
    StatePart model;
    model.set_tensors("model");
    last_.state = {{model, FileOf("b.fc.weight", {10, 1}, trained_)}};
    last_.train = [](const TrainRequest& request, grpc::ServerContext*, FakeStage::Writer* writer) {
      for (uint64_t step = request.first_step(); step <= request.last_step(); ++step) {
        writer->Write(Step(step, /*loss=*/2, /*correct=*/1, /*samples=*/step % 2 == 1 ? 3 : 1));
      }
      return grpc::Status::OK;
    };
    for (FakeStage* stage : {&first_, &last_}) {
      List("a.fc.weight", {1, 64}, stage);
      List("b.fc.weight", {10, 1}, stage);
      stage->initial.set_folder("/data/model");
      stage->digest = [](const std::string& name) { return "digest of " + name; };
    }
    options_.run = "run";
    options_.checkpoints = root_ + "/checkpoints";
  }
  static void List(const std::string& name, std::vector<int64_t> shape, FakeStage* stage) {
    ListInitialResponse::Tensor& tensor = *stage->initial.add_tensors();
    tensor.set_name(name);
    tensor.set_dtype("F32");
    *tensor.mutable_shape() = {shape.begin(), shape.end()};
    tensor.set_bytes(static_cast<uint64_t>(4 * shape[0] * shape[1]));
  }
  void WriteInit(const std::string& frozen) {
    const absl::Status status = WriteTensorFile(
        init_ + "/model.safetensors",
        {{}, {{"a.fc.weight", "F32", {1, 64}, frozen}, {"b.fc.weight", "F32", {10, 1}, trained_}}});
    ASSERT_TRUE(status.ok()) << status;
  }
  absl::Status TrainAll() { return Train(options_); }
  // Trains an epoch more from the last checkpoint.
  absl::Status GoOn() {
    options_.from = *NewestCheckpoint(options_.checkpoints);
    experiment_.set_epochs(static_cast<uint32_t>(options_.from->manifest.epoch() + 1));
    summary_.Clear();
    return TrainAll();
  }
  CheckpointManifest Manifest(uint64_t step) const {
    return *ReadManifest(CheckpointPath(options_.checkpoints, step));
  }

  const std::string root_ = ::testing::TempDir() + "/initial";
  const std::string init_ = root_ + "/init";
  const std::string frozen_ = std::string(4 * 64, 'f'), trained_ = std::string(4 * 10, 't');
  RunOptions options_;
};

TEST_F(InitialTest, CheckpointsLeaveOutFrozenParametersAndTellTheirDigests) {
  const absl::Status status = TrainAll();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(first_.left_out(), ElementsAre("a.fc.weight"));
  const CheckpointBase base = Manifest(2).base();
  EXPECT_EQ(base.init(), init_);
  EXPECT_EQ(base.at(), "coordinator");
  ASSERT_EQ(base.tensors_size(), 1);
  EXPECT_EQ(base.tensors(0).name(), "a.fc.weight");
  EXPECT_EQ(base.tensors(0).sha256(), Sha256(frozen_));
  EXPECT_FALSE(summary_.provenance().has_initial());
}

TEST_F(InitialTest, ThoseOfARunThatTrainsAllAreWhole) {
  experiment_.clear_freeze();
  ASSERT_TRUE(TrainAll().ok());
  EXPECT_THAT(first_.left_out(), IsEmpty());
  EXPECT_FALSE(Manifest(2).has_base());
}

TEST_F(InitialTest, ARunGoesOnWithItsBase) {
  ASSERT_TRUE(TrainAll().ok());
  const absl::Status status = GoOn();
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(first_.restored().size(), 1u);
  EXPECT_EQ(first_.restored()[0].second, FileOf("a.fc.weight", {1, 64}, frozen_));
  EXPECT_EQ(Manifest(4).base().tensors(0).sha256(), Sha256(frozen_));
}

TEST_F(InitialTest, AnotherBaseIsRefusedByBothDigests) {
  ASSERT_TRUE(TrainAll().ok());
  const std::string other(4 * 64, 'o');
  WriteInit(other);
  EXPECT_THAT(
      std::string(GoOn().message()),
      AllOf(HasSubstr(init_ + "/model.safetensors: a.fc.weight has SHA-256 " + Sha256(other)),
            HasSubstr("want " + Sha256(frozen_))));
}

TEST_F(InitialTest, ABaseThatIsGoneIsNamedAndMayStandElsewhere) {
  ASSERT_TRUE(TrainAll().ok());
  const FoundCheckpoint found = *NewestCheckpoint(options_.checkpoints);
  EXPECT_TRUE(CheckBase(experiment_, found).ok());
  fs::rename(init_, root_ + "/moved");
  EXPECT_THAT(std::string(CheckBase(experiment_, found).message()),
              AllOf(HasSubstr(init_), HasSubstr("--set init=DIR")));
  experiment_.set_init(root_ + "/moved");
  EXPECT_TRUE(CheckBase(experiment_, found).ok());
  const absl::Status status = GoOn();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Manifest(4).base().init(), root_ + "/moved");
}

TEST_F(InitialTest, StagesThatReadTheFolderAreSentNoParameters) {
  experiment_.set_init_at("stages");
  experiment_.set_init("hf:me/model");  // not on this machine
  const absl::Status status = TrainAll();
  ASSERT_TRUE(status.ok()) << status;
  for (const FakeStage* stage : {&first_, &last_}) {
    EXPECT_THAT(stage->calls(), Contains("ReadInitial"));
    EXPECT_THAT(stage->calls(), Not(Contains("ImportParameters")));
  }
  ASSERT_EQ(last_.read_initial().tensors_size(), 1);
  EXPECT_EQ(last_.read_initial().tensors(0).name(), "b.fc.weight");
  const InitialRecord& record = summary_.provenance().initial();
  EXPECT_EQ(record.folder(), "hf:me/model");
  EXPECT_EQ(record.tensors(), 2u);
  EXPECT_EQ(record.bytes(), 4u * 74);
  EXPECT_EQ(record.sha256(), Sha256("a.fc.weight digest of a.fc.weight\n"
                                    "b.fc.weight digest of b.fc.weight\n"));
  EXPECT_EQ(Manifest(2).base().at(), "stages");
  EXPECT_EQ(Manifest(2).base().tensors(0).sha256(), "digest of a.fc.weight");
}

TEST_F(InitialTest, TheyReadTheirBaseAgainAndCompareIt) {
  experiment_.set_init_at("stages");
  ASSERT_TRUE(TrainAll().ok());
  const absl::Status status = GoOn();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(first_.read_initial().tensors_size(), 1);
  EXPECT_EQ(last_.read_initial().tensors_size(), 0);
  EXPECT_THAT(last_.read_initial().kept(), ElementsAre("b.fc.weight"));
  EXPECT_THAT(first_.restored(), IsEmpty());
  ASSERT_EQ(last_.restored().size(), 1u);
  first_.digest = [](const std::string&) { return "another"; };
  EXPECT_THAT(
      std::string(GoOn().message()),
      AllOf(HasSubstr("init: stage 0 ("), HasSubstr("/data/model: a.fc.weight has SHA-256 "
                                                    "another, want digest of a.fc.weight")));
}

TEST_F(InitialTest, FoldersThatDifferAreNamedWithTheirStages) {
  experiment_.set_init_at("stages");
  last_.initial.mutable_tensors(1)->set_dtype("BF16");
  EXPECT_THAT(std::string(TrainAll().message()),
              AllOf(HasSubstr("init: stage 1 ("), HasSubstr("stage 0 ("),
                    HasSubstr("b.fc.weight is F32 [10, 1] there, BF16 [10, 1] here")));
  last_.initial = first_.initial;
  last_.initial.set_config_sha256("abc");
  EXPECT_THAT(std::string(TrainAll().message()), HasSubstr("config.json has SHA-256  there, abc"));
}

TEST_F(InitialTest, AModelThatDoesNotFitIsRefusedByItsTensors) {
  experiment_.set_init_at("stages");
  for (FakeStage* stage : {&first_, &last_}) List("c.fc.weight", {1, 1}, stage);
  EXPECT_THAT(std::string(TrainAll().message()),
              HasSubstr("init: /data/model: does not fit the model: c.fc.weight is no parameter"));
}

}  // namespace
}  // namespace thinwire
