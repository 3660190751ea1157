#include "config/smallest_message.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/codecs/axes.h"
#include "compress/feedback/plan.h"
#include "compress/level.h"
#include "compress/low_rank_matrices.h"
#include "models/tied_weight.h"

namespace thinwire {
namespace {

// Returns the size of the last batch of `samples` samples.
int64_t LastBatch(int64_t samples, int64_t batch) { return (samples - 1) % batch + 1; }

int64_t SmallestMicrobatch(int64_t batch, int64_t microbatches) {
  return batch / std::min(batch, microbatches);
}

int64_t Limited(int64_t samples, uint64_t limit) {
  return limit > 0 ? static_cast<int64_t>(std::min<uint64_t>(limit, samples)) : samples;
}

// Number of samples in the smallest message of training, and of evaluation.
struct Smallest {
  int64_t train, evaluate;
};
absl::StatusOr<Smallest> SmallestOf(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const DatasetInfo data, DatasetOf(experiment.data()));
  const int64_t batch = experiment.data().batch_size();
  const int64_t microbatches = BatchMicrobatchesOf(experiment);
  const int64_t train = Limited(data.train_samples, experiment.data().limit());
  const int64_t last = LastBatch(train, batch);
  const int64_t first = std::min(train, batch);
  return Smallest{
      std::min(SmallestMicrobatch(first, microbatches), SmallestMicrobatch(last, microbatches)),
      LastBatch(Limited(data.test_samples, experiment.data().test_limit()), batch)};
}

// Returns whether evaluation uses the codec. It does for activations, except those that ef21 keeps
// per sample.
bool IsEvaluated(const Experiment& experiment, const DirectionSpec& does, bool gradient) {
  const bool exact =
      does.feedback.kind == FeedbackKind::kEf21 && does.feedback.key == StateKey::kSample;
  return !gradient && !exact && experiment.evaluation().compressed();
}

absl::Status CheckRank(const CodecSpec& codec, const Shape& message) {
  if (codec.rank == 0) return absl::OkStatus();
  const LowRankMatrices m = LowRankMatricesOf(message, codec);
  if (m.rank < std::min(m.rows, m.columns)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("low_rank: rank ", codec.rank, " of the smallest message ", message.ToString(),
                   ", a matrix of ", m.rows, " x ", m.columns, ", want less than both"));
}

absl::Status CheckChannels(const CodecSpec& codec, const Shape& message) {
  if (codec.rotation != Rotation::kPrincipal || ChannelsOf(message) <= Axes::kMostChannels) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("rotation is principal of ", ChannelsOf(message),
                                                 " channels, want at most ", Axes::kMostChannels));
}

// Checks that the codec gets a part of each row, and that samples are sequences where the first
// position is exact.
absl::Status CheckDivided(const CodecSpec& codec, const Shape& message) {
  const int64_t channels = ChannelsOf(message);
  if (codec.outliers > 0 && codec.outliers >= channels) {
    return absl::InvalidArgumentError(
        absl::StrCat("outliers is ", codec.outliers, " of ", channels, " channels, want fewer"));
  }
  if (codec.first_position == FirstPosition::kCoded || message.rank() == 3) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("first_position is exact of messages ", message.ToString(),
                   ", want sequences, [samples, positions, features]"));
}

absl::Status CheckHalves(const DirectionSpec& does, const Shape& message) {
  if (does.feedback.kind != FeedbackKind::kSplit) return absl::OkStatus();
  return HalvesOf(Lowest(does.codec, does.level), message).status();
}

// Shapes of the smallest messages at a cut.
struct Crossing {
  std::string cut;
  Shape train, either;  // in training; the smaller of training and evaluation
};
// `slices` is the result of SlicesFrom.
std::vector<Crossing> CrossingsOf(const Partition& partition, const std::vector<int64_t>& slices,
                                  const Smallest& smallest) {
  std::vector<Crossing> crossings;
  for (const Cut& cut : partition.cuts) {
    const Shape& sample = partition.model.blocks[cut.block].out;
    const Shape part =
        slices.empty() ? sample : sample.With(1, *std::min_element(slices.begin(), slices.end()));
    crossings.push_back({cut.name, part.WithBatch(smallest.train),
                         part.WithBatch(std::min(smallest.train, smallest.evaluate))});
  }
  const std::optional<TiedWeight> tied = FindTiedWeight(partition.model);
  if (tied && !crossings.empty()) crossings.push_back({kTiedCut, tied->shape, tied->shape});
  return crossings;
}

}  // namespace

absl::Status CheckCarries(const DirectionSpec& does, const Shape& message) {
  absl::Status status = CheckRank(does.codec, message);
  status.Update(CheckChannels(does.codec, message));
  status.Update(CheckDivided(does.codec, message));
  status.Update(CheckHalves(does, message));
  return status;
}

absl::StatusOr<std::vector<SmallestMessage>> SmallestMessages(const Experiment& experiment,
                                                              const Partition& partition) {
  ASSIGN_OR_RETURN(const Smallest smallest, SmallestOf(experiment));
  ASSIGN_OR_RETURN(const std::vector<int64_t> slices,
                   SlicesFrom(experiment, partition.model.positions));
  std::vector<SmallestMessage> messages;
  for (const Crossing& crossing : CrossingsOf(partition, slices, smallest)) {
    for (const bool gradient : {false, true}) {
      ASSIGN_OR_RETURN(const DirectionSpec does,
                       DirectionFrom(DirectionOf(experiment, crossing.cut, gradient), gradient));
      const bool is_evaluated = IsEvaluated(experiment, does, gradient);
      messages.push_back({crossing.cut, gradient, does, crossing.train,
                          is_evaluated ? crossing.either : crossing.train});
    }
  }
  return messages;
}

absl::Status CheckSmallestMessages(const Experiment& experiment, const Partition& partition) {
  ASSIGN_OR_RETURN(const std::vector<SmallestMessage> messages,
                   SmallestMessages(experiment, partition));
  for (const SmallestMessage& message : messages) {
    absl::Status status = CheckRank(message.does.codec, message.coded);
    status.Update(CheckCarries(message.does, message.train));
    if (status.ok()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(DirectionPath(experiment, message.cut, message.gradient), ": ",
                     status.message(), ", at cut ", message.cut));
  }
  return absl::OkStatus();
}

}  // namespace thinwire
