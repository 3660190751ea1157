// Samples in memory: labelled images, sequences of a text's tokens, where each token's label is the
// next token or hidden tokens are labels, or sentences with a class or a score. Immutable once
// loaded; thread-safe.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/enum_names.h"
#include "base/parameters.h"
#include "data/chat_format.h"
#include "data/document_encoder.h"
#include "data/example.h"
#include "data/packing.h"
#include "data/tokenizer.h"
#include "tensor/shape.h"

namespace thinwire {

// A data set.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  // Returns the number of classes; of a text without labels of its own, the size of the vocabulary;
  // 1 where labels are scores.
  virtual int64_t classes() const = 0;
  // Returns the shape with batch extent 1: [1, h, w, c] for images, [1, context] for token ids.
  virtual Shape sample_shape() const = 0;
  virtual bool is_text() const { return false; }  // whether samples are token ids
  // Returns whether augmentation hides some tokens, which are the labels then.
  virtual bool hides_tokens() const { return false; }
  // Returns whether a sample may have positions without a label.
  virtual bool may_lack_labels() const { return hides_tokens(); }
  // Returns 1 for an image or for sentences, the number of positions for a text.
  virtual int64_t labels_per_sample() const { return 1; }

  // Changes of one sample.
  struct Augmentation {
    // For images: torchvision's RandomCrop, then RandomHorizontalFlip. Pixel (y, x) of the crop is
    // (y + dy, x + dx) of the image. Outside the image it is a black raw pixel, as the crop comes
    // before normalisation. Then the crop is flipped.
    int dy = 0, dx = 0;  // pixels
    bool flip = false;   // left to right
    // For pictures that are cut anywhere: the key of the random numbers that choose the part; 0:
    // their middle.
    uint64_t crop = 0;
    // For a text in random windows: the token at which the window begins, below places(); -1: the
    // sample is block number `sample`, modulo the number of blocks.
    int64_t place = -1;
    // For hidden tokens: the key of the random numbers that choose them.
    uint64_t mask = 0;
  };
  // Writes labels_per_sample() classes to `out`, or a score in units of DatasetInfo::score_unit; a
  // negative number stands for no label.
  virtual void Labels(int64_t sample, const Augmentation& augmentation,
                      absl::Span<int32_t> out) const = 0;
  // Writes the normalised sample, channels-last, to `out`: h w c floats. For images only.
  virtual void Load(int64_t /*sample*/, const Augmentation& /*augmentation*/,
                    absl::Span<float> /*out*/) const {
    assert(!is_text());
  }
  // Writes `context` ids to `out`. For a text only.
  virtual void LoadTokens(int64_t /*sample*/, const Augmentation& /*augmentation*/,
                          absl::Span<int32_t> /*out*/) const {
    assert(is_text());
  }
  // Returns the positions at which documents that do not see one another begin in a sample of a
  // text, ascending, but for the first.
  virtual std::vector<int64_t> DocumentStarts(int64_t /*sample*/) const { return {}; }
  // Returns a digest of the data: equal on two machines iff bytes, order and size (the limit) are
  // equal; of pictures in folders iff names and lengths of the files are.
  virtual uint64_t digest() const = 0;
  // Returns the first error that Labels, Load or LoadTokens met, of data that stay in files; what
  // they have written since may be anything.
  virtual absl::Status status() const { return absl::OkStatus(); }

  // Return how this kind of data can be augmented: padding of crops in pixels (0: none), whether
  // flips are allowed, whether any part of a picture may be taken, and the number of places where a
  // window can begin (0: samples do not move).
  virtual int crop_padding() const { return 0; }
  virtual bool may_flip() const { return false; }
  virtual bool crops_anywhere() const { return false; }
  virtual int64_t places() const { return 0; }
};

struct DataSplits {
  std::unique_ptr<Dataset> train, test;
};

// Kinds of a text's tokens.
enum class TokenKind : uint8_t {
  kCharacters,  // a character of the corpus (characters.h)
  kBytes,       // a byte (bytes.h)
  kBpe,         // GPT-2's byte pair encoding (bpe.h)
  kWordPiece,   // BERT's word pieces (word_piece.h)
  kHf,          // those of a tokenizer.json (hf_tokenizer.h)
  kIds,         // ids whose tokenizer is not known, and which have no text
};

// Returns the names "characters", "bytes", "bpe", "word_piece", "hf" and "ids"
// (base/enum_names.h).
NameTable<TokenKind> TableOf(TokenKind);

// Returns the names "token" and "characters".
NameTable<EndOfText> TableOf(EndOfText);

// Returns the names "text" and "ids".
NameTable<Specials> TableOf(Specials);

// Tokens of a text that a model learns to predict.
enum class Objective : uint8_t {
  kNext,    // the next token at each position
  kMasked,  // tokens that are hidden (masked_text.h)
};

// Returns the names "next" and "masked".
NameTable<Objective> TableOf(Objective);

// Types of the ids in files of them (id_files.h).
enum class IdType : uint8_t { kHeader, kUint16, kUint32 };

// Returns the names "header", "uint16" and "uint32".
NameTable<IdType> TableOf(IdType);

// Classes of CIFAR-100.
enum class CifarLabels : uint8_t {
  kFine,    // 100 classes
  kCoarse,  // 20 classes, of five fine ones each
};

// Returns the names "fine" and "coarse".
NameTable<CifarLabels> TableOf(CifarLabels);

// Treatment of lines that are no examples.
enum class OnError : uint8_t {
  kStop,  // the first one is an error
  kSkip,  // they are left out and counted
};

// Returns the names "stop" and "skip".
NameTable<OnError> TableOf(OnError);

// Tasks of GLUE (glue.h).
enum class GlueTask : uint8_t { kCola, kMrpc, kRte, kSst2, kStsb };

// Returns the names "cola", "mrpc", "rte", "sst2" and "stsb".
NameTable<GlueTask> TableOf(GlueTask);

// Numbers of a text's tokens, or of samples, which may be known without reading them. All zero:
// they are not.
struct CorpusSize {
  int64_t vocabulary = 0;
  int64_t train_tokens = 0, test_tokens = 0;    // of a text
  int64_t train_samples = 0, test_samples = 0;  // of sentences, documents or pictures
  int64_t classes = 0;                          // of pictures
  // Lines that were left out, and where the first of them is and what it lacks.
  int64_t skipped_lines = 0;
  std::string first_skipped = {};

  bool is_known() const { return vocabulary > 0 || classes > 0; }

  // Compares the numbers of what there is.
  friend bool operator==(const CorpusSize& a, const CorpusSize& b) {
    return a.vocabulary == b.vocabulary && a.train_tokens == b.train_tokens &&
           a.test_tokens == b.test_tokens && a.train_samples == b.train_samples &&
           a.test_samples == b.test_samples && a.classes == b.classes;
  }
};

// Parts of a picture that are trained on.
enum class PictureCrop : uint8_t {
  kRandomResized,  // any part of 8 % to all of its area, resized
  kMiddle,         // the middle, as in evaluation
};

// Returns the names "random_resized" and "middle".
NameTable<PictureCrop> TableOf(PictureCrop);

// Scaling of colours in [0, 1].
enum class PictureNormalize : uint8_t {
  kImagenet,  // they lose ImageNet's mean and are divided by its deviation
  kNone,
};

// Returns the names "imagenet" and "none".
NameTable<PictureNormalize> TableOf(PictureNormalize);

// How pictures become samples.
struct ImageOptions {
  int64_t size = 224;    // side of a sample
  int64_t resize = 256;  // shorter side of a picture before its middle is taken
  PictureCrop crop = PictureCrop::kRandomResized;
  PictureNormalize normalize = PictureNormalize::kImagenet;
};

// Returns InvalidArgument for sides that are none, or of which `resize` is the smaller.
absl::Status CheckImageOptions(const ImageOptions& options);

// Tokens of a text, and how samples are made of them.
struct TextOptions {
  TokenKind tokens = TokenKind::kBpe;
  // Folder; bpe: with GPT-2's files; word_piece: with vocab.txt; hf: with tokenizer.json.
  std::string vocabulary;
  EndOfText end_of_text = EndOfText::kToken;  // bpe
  bool lowercase = true;                      // word_piece: words without case and accents
  Specials specials = Specials::kText;        // hf
  int64_t context = 256;                      // number of tokens of a sample
  // Number of training samples at random places; 0: the text in blocks, in order.
  int64_t windows = 0;
  std::string file;               // text, tokens, jsonl: the corpus
  std::string train, test;        // or its parts
  double split = 0.9;             // share of `file` for training: of its characters, ids or lines
  IdType type = IdType::kHeader;  // tokens: of the files' ids
  Objective objective = Objective::kNext;
  double mask_rate = 0.15;          // masked: share of a sample's tokens
  GlueTask task = GlueTask::kSst2;  // glue
  // jsonl: keys of a line, and lines that are no examples; how conversations are written, what is
  // learned of a document, and how documents become samples.
  ExampleKeys keys;
  OnError on_error = OnError::kStop;
  ChatFormat chat;
  LossOn loss_on = LossOn::kAnswers;  // tokens: as masks beside the files say
  Packing packing = Packing::kNone;
  TooLong too_long = TooLong::kSplit;
  CorpusSize size;  // size with which the run was planned
};

// Returns the number of a sample's tokens that are the text's: `context`, or what special tokens
// leave of it.
inline int64_t TokensOfText(const TextOptions& text) {
  return text.objective == Objective::kMasked ? text.context - 2 : text.context;
}

// A data set and how much of it is used.
struct DataOptions {
  std::string name;  // one of AllDatasets()
  // Folder with the official files, or its parent folder; images: with folders.
  std::string dir;
  int64_t limit = 0;  // number of training samples, the first ones; 0: all that are not held out
  int64_t test_limit = 0;  // number of test samples, the first ones; 0: all
  // Number of training samples, the last ones (of a text its last tokens), that are the test
  // samples and are not trained on. 0: the published test set.
  int64_t held_out = 0;
  bool verify = true;                       // compare files with the official ones
  CifarLabels labels = CifarLabels::kFine;  // cifar100
  TextOptions text;
  ImageOptions images;  // of pictures in folders
};

// Properties of a data set that are known before it is loaded.
struct KnownDataset {
  std::string name;
  bool has_folder = false;  // read from official files, not embedded
  bool is_text = false;
  bool has_file = false;               // True if the text is files of the user.
  TokenKind tokens = TokenKind::kBpe;  // default kind of a text's tokens
  bool is_labelled = false;    // True of a text whose samples are sentences with a class or score.
  bool has_pictures = false;   // True of pictures in folders, which are counted there.
  bool has_documents = false;  // True of files whose documents are encoded one by one.
  bool has_coarse = false;     // True of images whose classes are fine ones or groups of them.

  // Returns whether the files have ids, of which no text is known.
  bool has_ids() const { return tokens == TokenKind::kIds; }
};

// Returns all data sets, in the order in which errors and lists show them.
std::vector<KnownDataset> AllDatasets();

// Calls visit(name, field, presence) for the options of the data set spec.name; names are those of
// experiment files.
template <typename Spec, typename Visit, ForSpec<Spec, DataOptions> = 0>
void VisitParameters(Spec& spec, Visit&& visit) {
  for (const KnownDataset& known : AllDatasets()) {
    if (known.name != spec.name) continue;
    if (known.has_folder) visit("dir", spec.dir, Presence::kOptional);
    if (known.has_coarse) visit("labels", spec.labels, Presence::kWritten);
    if (known.has_pictures) {
      visit("size", spec.images.size, Presence::kWritten);
      visit("resize", spec.images.resize, Presence::kWritten);
      visit("crop", spec.images.crop, Presence::kWritten);
      visit("normalize", spec.images.normalize, Presence::kWritten);
    }
    if (!known.is_text) continue;
    visit("vocabulary", spec.text.vocabulary, Presence::kOptional);
    visit("lowercase", spec.text.lowercase, Presence::kOptional);
    visit("context", spec.text.context, Presence::kWritten);
    if (known.is_labelled) {
      visit("task", spec.text.task, Presence::kRequired);
      continue;
    }
    visit("tokens", spec.text.tokens, Presence::kSpelled);
    visit("end_of_text", spec.text.end_of_text, Presence::kOptional);
    visit("specials", spec.text.specials, Presence::kOptional);
    if (!known.has_documents) visit("windows", spec.text.windows, Presence::kWritten);
    if (known.has_documents) {
      visit("loss_on", spec.text.loss_on, Presence::kWritten);
      visit("packing", spec.text.packing, Presence::kWritten);
      visit("too_long", spec.text.too_long, Presence::kWritten);
      visit("on_error", spec.text.on_error, Presence::kOptional);
    } else if (known.has_ids()) {
      visit("type", spec.text.type, Presence::kOptional);
      visit("loss_on", spec.text.loss_on, Presence::kOptional);
    } else {
      visit("objective", spec.text.objective, Presence::kOptional);
      visit("mask_rate", spec.text.mask_rate, Presence::kOptional);
    }
    if (!known.has_file) continue;
    visit("file", spec.text.file, Presence::kOptional);
    visit("train", spec.text.train, Presence::kOptional);
    visit("test", spec.text.test, Presence::kOptional);
    visit("split", spec.text.split, Presence::kWritten);
  }
}

// Returns the options of a data set with their defaults.
DataOptions DefaultOptions(const KnownDataset& known);

// Description of a data set before, or without, loading it, under its options except for their
// limits.
struct DatasetInfo {
  std::string name;
  // Shape of one sample with batch extent 1: [1, 32, 32, 3], or [1, context] for a text.
  Shape sample;
  int64_t classes = 0;  // as in Dataset
  int64_t train_samples = 0;
  int64_t test_samples = 0;
  bool is_text = false;
  int64_t vocabulary = 0;        // number of token ids; 0 for images
  int64_t labels = 1;            // of a sample
  bool hides_tokens = false;     // as in Dataset
  bool packs_documents = false;  // whether samples may have DocumentStarts
  double score_unit = 0;         // score for which a label of 1 stands; 0: labels are classes
};

// Describes a data set without loading it. InvalidArgument for an unknown name (with the most
// similar and all known ones), for an objective that the tokens do not allow, and for a context or
// held-out samples that leave less than one sample. FailedPrecondition for a text whose size is
// neither in options.text.size nor known to this program: see MeasureCorpus.
absl::StatusOr<DatasetInfo> DescribeData(const DataOptions& options);

// Returns the size of a text if this program knows it: that of the embedded and the official texts,
// by characters or by GPT-2's own vocabulary. Otherwise vocabulary is 0.
CorpusSize KnownSize(const DataOptions& options);

// Reads a text and counts its tokens. Errors as in LoadData.
absl::StatusOr<CorpusSize> MeasureCorpus(const DataOptions& options);

// Loads the data. NotFound names the missing file and how to get it. DataLoss names the file and
// the size or checksum met and wanted. InvalidArgument for an unknown name (with the most similar
// and all known ones), for a limit or held-out samples beyond the data, for a text that is empty,
// too short for a sample, or of another size than options.text.size.
absl::StatusOr<DataSplits> LoadData(const DataOptions& options);

// Returns the tokenizer of a text; reads what it needs for that. Errors as in LoadData, and
// InvalidArgument for data that are no text, or ids of an unknown tokenizer.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const DataOptions& options);

}  // namespace thinwire
