// Samples in memory: labelled images, or sequences of a text's tokens, each with the one that comes
// next for a label. Immutable once loaded; any thread.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/parameters.h"
#include "data/tokenizer.h"
#include "tensor/shape.h"

namespace thinwire {

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  virtual int64_t classes() const = 0;  // of text: the vocabulary
  // Batch extent 1: [1, h, w, c] of images, [1, context] of text.
  virtual Shape sample_shape() const = 0;
  virtual bool is_text() const { return false; }
  // Images have one, text has one for each position.
  virtual int64_t labels_per_sample() const { return 1; }

  struct Augmentation {
    // Images. torchvision's RandomCrop, then RandomHorizontalFlip: pixel (y, x) of the crop is (y +
    // dy, x + dx) of the image, black outside (black as a raw pixel: the crop comes before
    // normalisation); then the crop is flipped.
    int dy = 0, dx = 0;  // pixels
    bool flip = false;   // left to right
    // Text in random windows: the token, of places(), with which the window begins; -1: the sample
    // stands where block `sample` (modulo the blocks there are) does.
    int64_t place = -1;
  };
  // Writes labels_per_sample() classes.
  virtual void Labels(int64_t sample, const Augmentation& augmentation,
                      absl::Span<int32_t> out) const = 0;
  // Images only: writes the normalised sample, channels-last, to `out`: h w c floats.
  virtual void Load(int64_t /*sample*/, const Augmentation& /*augmentation*/,
                    absl::Span<float> /*out*/) const {
    assert(!is_text());
  }
  // Text only: writes `context` ids.
  virtual void LoadTokens(int64_t /*sample*/, const Augmentation& /*augmentation*/,
                          absl::Span<int32_t> /*out*/) const {
    assert(is_text());
  }
  // Which data this is: equal on two machines iff bytes, order and size (the limit) are equal.
  virtual uint64_t digest() const = 0;

  // How this kind of data may be augmented: crop padding in pixels (0: none), flips or not, places
  // where a window may begin (0: samples stay where they are).
  virtual int crop_padding() const { return 0; }
  virtual bool may_flip() const { return false; }
  virtual int64_t places() const { return 0; }
};

struct DataSplits {
  std::unique_ptr<Dataset> train, test;
};

// What a token of a text is.
enum class TokenKind : uint8_t {
  kCharacters,  // a character of the corpus (characters.h)
  kBytes,       // a byte (bytes.h)
  kBpe,         // GPT-2's byte pair encoding (bpe.h)
};

// "characters", "bytes", "bpe"; the inverse gives InvalidArgument with the known ones.
const char* Name(TokenKind kind);
absl::Status FromName(const std::string& name, TokenKind* to);
std::vector<TokenKind> AllTokenKinds();

// "token", "characters"; likewise.
const char* Name(EndOfText end_of_text);
absl::Status FromName(const std::string& name, EndOfText* to);
std::vector<EndOfText> AllEndsOfText();

// What is known of a text's tokens without having them.
struct CorpusSize {
  int64_t vocabulary = 0;
  int64_t train_tokens = 0, test_tokens = 0;

  friend bool operator==(const CorpusSize& a, const CorpusSize& b) {
    return a.vocabulary == b.vocabulary && a.train_tokens == b.train_tokens &&
           a.test_tokens == b.test_tokens;
  }
};

// A text and how it is made of samples.
struct TextOptions {
  TokenKind tokens = TokenKind::kBpe;
  std::string vocabulary;                     // bpe: the folder with GPT-2's files
  EndOfText end_of_text = EndOfText::kToken;  // bpe
  int64_t context = 256;                      // tokens of a sample
  int64_t windows = 0;  // training samples, each at a random place; 0: the text in blocks, in order
  std::string file;     // text: the corpus
  double split = 0.9;   // text: share of the characters that is for training
  CorpusSize size;      // what the run was planned with; of vocabulary 0: not known
};

struct DataOptions {
  std::string name;        // one of AllDatasets()
  std::string dir;         // cifar10, wikitext2: the folder with the files, or the one around it
  int64_t limit = 0;       // first n training samples; 0: all that are not held out
  int64_t test_limit = 0;  // first n test samples; 0: all
  // The last n training samples, of text its last tokens, are the test samples, and no training
  // samples; 0: the test set is as it is published.
  int64_t held_out = 0;
  bool verify = true;  // compare files with the official ones
  TextOptions text;
};

// What may be said of a data set before any of it is loaded.
struct KnownDataset {
  std::string name;
  bool has_folder = false;  // read from official files, not embedded
  bool is_text = false;
  bool has_file = false;               // a text of the user's own
  TokenKind tokens = TokenKind::kBpe;  // of a text, unless something else is said
};

// In the order in which errors and lists name them.
std::vector<KnownDataset> AllDatasets();

// The options that belong to the data set of that name, under their names in experiment files.
template <typename Spec, typename Visit, ForSpec<Spec, DataOptions> = 0>
void VisitParameters(Spec& spec, Visit&& visit) {
  for (const KnownDataset& known : AllDatasets()) {
    if (known.name != spec.name) continue;
    if (known.has_folder) visit("dir", spec.dir, Presence::kOptional);
    if (!known.is_text) continue;
    visit("tokens", spec.text.tokens, Presence::kSpelled);
    visit("vocabulary", spec.text.vocabulary, Presence::kOptional);
    visit("end_of_text", spec.text.end_of_text, Presence::kOptional);
    visit("context", spec.text.context, Presence::kWritten);
    visit("windows", spec.text.windows, Presence::kWritten);
    if (!known.has_file) continue;
    visit("file", spec.text.file, Presence::kRequired);
    visit("split", spec.text.split, Presence::kWritten);
  }
}

// Fresh ones.
DataOptions DefaultOptions(const KnownDataset& known);

// What is known of a data set before, or without, loading it: as it is under its options but for
// their limits.
struct DatasetInfo {
  std::string name;
  Shape sample;  // the shape of one sample, batch extent 1: [1, 32, 32, 3], or [1, context] of text
  int64_t classes = 0;  // of text: the vocabulary
  int64_t train_samples = 0;
  int64_t test_samples = 0;
  bool is_text = false;
};

// Loads nothing. InvalidArgument for an unknown name, with the nearest and all known ones; for a
// context, or samples held out, that leave less than one sample; FailedPrecondition for a text of
// which neither options.text.size nor this program knows the size: see MeasureCorpus.
absl::StatusOr<DatasetInfo> DescribeData(const DataOptions& options);

// The size of a text as far as this program knows it: of the embedded and the official ones, by
// characters or by GPT-2's own vocabulary. Of vocabulary 0: it does not.
CorpusSize KnownSize(const DataOptions& options);

// Reads and counts a text; errors as of LoadData.
absl::StatusOr<CorpusSize> MeasureCorpus(const DataOptions& options);

// NotFound names the missing file and how to get it; DataLoss names file, the size or checksum
// met and the one wanted; InvalidArgument an unknown name, the nearest and all known ones, or a
// limit or samples held out that there are too few samples for, a text that is empty or too short
// for a sample, or one of another size than options.text.size.
absl::StatusOr<DataSplits> LoadData(const DataOptions& options);

// How the ids of a text came about; reads what it takes for that. Errors as of LoadData, and
// InvalidArgument for data that are no text.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const DataOptions& options);

}  // namespace thinwire
