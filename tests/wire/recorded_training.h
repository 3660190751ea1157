// Trains an experiment in this process and records every cut of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "nn/optimizer.h"
#include "nn/segment/segment.h"
#include "proto/experiment.pb.h"
#include "stage_server/stage/feed.h"
#include "tests/wire/recorded_cut.h"

namespace thinwire {

struct RecordedRun {
  std::string name;  // name of its folder, and id of the run
  Experiment experiment;
  bool bf16_cuts = false;  // layers compute in fp32, but what crosses is bf16
  // Messages say that documents begin in their samples, though the layers know of none.
  bool packs_documents = false;
  uint64_t nonfinite_step = 0;  // step whose messages each hold a NaN; 0 for none
};

class RecordedTraining {
 public:
  static absl::StatusOr<std::unique_ptr<RecordedTraining>> New(const RecordedRun& run);

  // Trains all epochs. After each it evaluates with and without the codecs.
  absl::Status Run();

  // Writes FOLDER/NAME/run.json, FOLDER/NAME/tensors.safetensors and, for each direction of each
  // cut, FOLDER/NAME/CUT.DIRECTION.frames. tests/wire/README.md says what they hold.
  absl::Status Write(const std::string& folder);

 private:
  // State that a microbatch leaves between its forward pass and its backward pass.
  struct InFlight {
    std::vector<Saved> saved;  // one per segment
    std::vector<int64_t> ids;
    Tensor dlogits;
  };

  explicit RecordedTraining(const RecordedRun& run) : run_(run) {}
  absl::Status Build();
  absl::Status BuildSegments();
  absl::Status Train(uint32_t epoch);
  absl::Status Step(Work work, const SampleRange& batch);
  absl::Status Evaluate(Phase phase, uint32_t epoch);
  absl::StatusOr<InFlight> Forward(const Work& work, const SampleRange& range);
  absl::Status Backward(const Work& work, InFlight* in_flight);
  absl::StatusOr<Tensor> Cross(size_t cut, const Work& work, Direction direction,
                               const std::vector<int64_t>& ids, const Tensor& x);
  std::vector<int64_t> IdsOf(const Work& work, const SampleRange& range) const;

  const RecordedRun run_;
  StageSpec spec_;
  Backend backend_;
  DataSplits data_;
  std::unique_ptr<Feed> feed_;
  std::vector<std::unique_ptr<Segment>> segments_;
  std::vector<std::unique_ptr<Optimizer>> optimizers_;
  std::vector<std::unique_ptr<RecordedCut>> cuts_;
};

}  // namespace thinwire
