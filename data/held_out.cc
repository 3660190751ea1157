#include "data/held_out.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace thinwire {
namespace {

std::string SpelledSize(const CorpusSize& size) {
  const std::string samples = absl::StrCat(size.train_samples, " and ", size.test_samples);
  return size.classes > 0 ? absl::StrCat(samples, " samples of ", size.classes, " classes")
                          : absl::StrCat(samples, " samples and a vocabulary of ", size.vocabulary);
}

}  // namespace

SampleRange FirstOf(int64_t samples, int64_t limit) { return {0, limit > 0 ? limit : samples}; }

absl::Status CheckLimit(const std::string& what, int64_t samples, int64_t limit) {
  if (limit <= samples) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a limit of ", limit, " samples, but ", what, " hold ", samples));
}

absl::StatusOr<ImageParts> PartsOf(const std::string& what, int64_t samples,
                                   const DataOptions& options) {
  const int64_t left = samples - options.held_out;
  if (left <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("held_out is ", options.held_out, ", but ", what,
                                                   " hold ", samples, " samples: want fewer"));
  }
  if (options.held_out == 0) {
    RETURN_IF_ERROR(CheckLimit(what, samples, options.limit));
    return ImageParts{FirstOf(samples, options.limit), {}};
  }
  RETURN_IF_ERROR(CheckLimit(absl::StrCat(what, " that are not held out"), left, options.limit));
  RETURN_IF_ERROR(CheckLimit("those held out", options.held_out, options.test_limit));
  const SampleRange held_out = FirstOf(options.held_out, options.test_limit);
  return ImageParts{FirstOf(left, options.limit), {left + held_out.first, left + held_out.last}};
}

absl::Status CheckPlannedSamples(const std::string& name, const CorpusSize& size,
                                 const CorpusSize& wanted) {
  if (!wanted.is_known() || size == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " has ", SpelledSize(size), " for training and test, want ",
                   SpelledSize(wanted), ", with which the experiment was resolved (data.corpus)"));
}

int64_t HeldOutTokens(const DataOptions& options) {
  return options.held_out > 0 ? options.held_out * TokensOfText(options.text) + 1 : 0;
}

}  // namespace thinwire
