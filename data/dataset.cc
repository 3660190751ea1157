#include "data/dataset.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "data/cifar.h"
#include "data/glue.h"
#include "data/held_out.h"
#include "data/id_corpus.h"
#include "data/image_folder.h"
#include "data/jsonl.h"
#include "data/known_sets.h"
#include "data/large_text.h"
#include "data/mnist.h"
#include "data/text.h"

namespace thinwire {
namespace {

// Tokens of a sample of sentences, unless it is said.
constexpr int64_t kSentenceContext = 128;

CorpusSize Unknown(TokenKind) { return {}; }

// A data set and its functions: `info` and `load` for images, `load` and `measure` for what is read
// from files of the user and for labelled sentences, `read` and `size` for a text; the others are
// null.
struct Entry {
  KnownDataset known;
  DatasetInfo (*info)(const DataOptions& options);
  absl::StatusOr<DataSplits> (*load)(const DataOptions& options);
  absl::StatusOr<CorpusText> (*read)(const DataOptions& options);
  CorpusSize (*size)(TokenKind tokens);
  absl::StatusOr<CorpusSize> (*measure)(const DataOptions& options);
};

Entry Images(const KnownDataset& known, DatasetInfo (*info)(const DataOptions& options),
             absl::StatusOr<DataSplits> (*load)(const DataOptions& options)) {
  return {known, info, load, nullptr, nullptr, nullptr};
}

Entry Digits() {
  KnownDataset known;
  known.name = "digits";
  return Images(known, DigitsInfo, LoadDigits);
}

Entry Cifar(const char* name, bool has_coarse) {
  KnownDataset known;
  known.name = name;
  known.has_folder = true;
  known.has_coarse = has_coarse;
  return Images(known, CifarInfo, LoadCifar);
}

Entry Mnist(const char* name) {
  KnownDataset known;
  known.name = name;
  known.has_folder = true;
  return Images(known, MnistInfo, LoadMnist);
}

Entry Text(const KnownDataset& known,
           absl::StatusOr<CorpusText> (*read)(const DataOptions& options),
           CorpusSize (*size)(TokenKind tokens)) {
  return {known, nullptr, nullptr, read, size, nullptr};
}

Entry TextOfFiles() {
  KnownDataset known;
  known.name = "text";
  known.is_text = known.has_file = true;
  return {known, nullptr, LoadTextFile, ReadTextFile, Unknown, MeasureTextFile};
}

Entry Glue() {
  KnownDataset known;
  known.name = "glue";
  known.has_folder = known.is_text = known.is_labelled = true;
  known.tokens = TokenKind::kWordPiece;
  return {known, nullptr, LoadGlue, nullptr, Unknown, MeasureGlue};
}

Entry Ids() {
  KnownDataset known;
  known.name = "tokens";
  known.is_text = known.has_file = true;
  known.tokens = TokenKind::kIds;
  return {known, nullptr, LoadIds, nullptr, Unknown, MeasureIds};
}

Entry Pictures() {
  KnownDataset known;
  known.name = "images";
  known.has_folder = known.has_pictures = true;
  return {known, nullptr, LoadImageFolder, nullptr, Unknown, MeasureImageFolder};
}

Entry Jsonl() {
  KnownDataset known;
  known.name = "jsonl";
  known.is_text = known.has_file = known.has_documents = true;
  return {known, nullptr, LoadJsonl, nullptr, Unknown, MeasureJsonl};
}

const std::vector<Entry>& Entries() {
  static const auto* const entries = new std::vector<Entry>{
      Cifar("cifar10", /*has_coarse=*/false),
      Cifar("cifar100", /*has_coarse=*/true),
      Digits(),
      Mnist("fashion_mnist"),
      Glue(),
      Pictures(),
      Jsonl(),
      Mnist("mnist"),
      Text({"shakespeare", /*has_folder=*/false, /*is_text=*/true, /*has_file=*/false,
            TokenKind::kCharacters},
           ReadShakespeare, ShakespeareSize),
      TextOfFiles(),
      Ids(),
      Text(
          {"wikitext2", /*has_folder=*/true, /*is_text=*/true, /*has_file=*/false, TokenKind::kBpe},
          ReadWikitext2, Wikitext2Size),
  };
  return *entries;
}

absl::StatusOr<const Entry*> Find(const std::string& name) {
  std::vector<std::string> known;
  for (const Entry& entry : Entries()) {
    known.push_back(entry.known.name);
    if (name == known.back()) return &entry;
  }
  return UnknownName("data", name, known);
}

absl::StatusOr<DatasetInfo> WithHeldOut(DatasetInfo info, const DataOptions& options) {
  if (options.held_out == 0) return info;
  const std::string what = absl::StrCat("the training data of ", info.name);
  DataOptions unlimited;
  unlimited.held_out = options.held_out;
  RETURN_IF_ERROR(PartsOf(what, info.train_samples, unlimited).status());
  info.train_samples -= options.held_out;
  info.test_samples = options.held_out;
  return info;
}

absl::StatusOr<DatasetInfo> DescribeSentences(const DataOptions& options, const CorpusSize& size) {
  DatasetInfo info;
  info.name = options.name;
  info.is_text = true;
  info.sample = {1, options.text.context};
  info.classes = ClassesOf(options.text.task);
  info.score_unit = ScoreUnitOf(options.text.task);
  info.vocabulary = size.vocabulary;
  info.train_samples = size.train_samples;
  info.test_samples = size.test_samples;
  return WithHeldOut(info, options);
}

DatasetInfo DescribePictures(const DataOptions& options, const CorpusSize& size) {
  DatasetInfo info;
  info.name = options.name;
  info.sample = {1, options.images.size, options.images.size, 3};
  info.classes = size.classes;
  info.train_samples = size.train_samples;
  info.test_samples = size.test_samples;
  return info;
}

DatasetInfo DescribeDocuments(const DataOptions& options, const CorpusSize& size) {
  DatasetInfo info;
  info.name = options.name;
  info.is_text = true;
  info.sample = {1, options.text.context};
  info.classes = info.vocabulary = size.vocabulary;
  info.labels = options.text.context;
  info.packs_documents = options.text.packing == Packing::kBestFit;
  info.train_samples = size.train_samples;
  info.test_samples = size.test_samples;
  return info;
}

absl::Status CheckText(const TextOptions& text) {
  if (text.context < 1 || text.windows < 0) {
    return absl::InvalidArgumentError(absl::StrCat("context is ", text.context, ", windows is ",
                                                   text.windows,
                                                   ": want at least 1, and 0 or more"));
  }
  return CheckObjective(text);
}

absl::StatusOr<CorpusText> ReadText(const DataOptions& options) {
  ASSIGN_OR_RETURN(const Entry* entry, Find(options.name));
  if (entry->read != nullptr) return entry->read(options);
  return absl::InvalidArgumentError(absl::StrCat("data ", options.name, " is no text"));
}

constexpr Named<TokenKind> kTokenNames[] = {
    {TokenKind::kCharacters, "characters"}, {TokenKind::kBytes, "bytes"}, {TokenKind::kBpe, "bpe"},
    {TokenKind::kWordPiece, "word_piece"},  {TokenKind::kHf, "hf"},       {TokenKind::kIds, "ids"}};

constexpr Named<IdType> kIdTypeNames[] = {
    {IdType::kHeader, "header"}, {IdType::kUint16, "uint16"}, {IdType::kUint32, "uint32"}};

constexpr Named<Objective> kObjectiveNames[] = {{Objective::kNext, "next"},
                                                {Objective::kMasked, "masked"}};

constexpr Named<PictureCrop> kCropNames[] = {{PictureCrop::kRandomResized, "random_resized"},
                                             {PictureCrop::kMiddle, "middle"}};

constexpr Named<PictureNormalize> kNormalizeNames[] = {{PictureNormalize::kImagenet, "imagenet"},
                                                       {PictureNormalize::kNone, "none"}};

constexpr Named<CifarLabels> kCifarNames[] = {{CifarLabels::kFine, "fine"},
                                              {CifarLabels::kCoarse, "coarse"}};

constexpr Named<OnError> kOnErrorNames[] = {{OnError::kStop, "stop"}, {OnError::kSkip, "skip"}};

constexpr Named<GlueTask> kTaskNames[] = {{GlueTask::kCola, "cola"},
                                          {GlueTask::kMrpc, "mrpc"},
                                          {GlueTask::kRte, "rte"},
                                          {GlueTask::kSst2, "sst2"},
                                          {GlueTask::kStsb, "stsb"}};

constexpr Named<EndOfText> kEndNames[] = {{EndOfText::kToken, "token"},
                                          {EndOfText::kCharacters, "characters"}};

constexpr Named<Specials> kSpecialsNames[] = {{Specials::kText, "text"}, {Specials::kIds, "ids"}};

}  // namespace

NameTable<TokenKind> TableOf(TokenKind) { return {"tokens", kTokenNames}; }
NameTable<EndOfText> TableOf(EndOfText) { return {"end_of_text", kEndNames}; }
NameTable<Specials> TableOf(Specials) { return {"specials", kSpecialsNames}; }
NameTable<Objective> TableOf(Objective) { return {"objective", kObjectiveNames}; }
NameTable<PictureCrop> TableOf(PictureCrop) { return {"crop", kCropNames}; }
NameTable<PictureNormalize> TableOf(PictureNormalize) { return {"normalize", kNormalizeNames}; }
NameTable<IdType> TableOf(IdType) { return {"type", kIdTypeNames}; }
NameTable<CifarLabels> TableOf(CifarLabels) { return {"labels", kCifarNames}; }
NameTable<OnError> TableOf(OnError) { return {"on_error", kOnErrorNames}; }
NameTable<GlueTask> TableOf(GlueTask) { return {"task", kTaskNames}; }

absl::Status CheckImageOptions(const ImageOptions& options) {
  constexpr int64_t kMost = 4096;
  if (options.size >= 1 && options.resize >= options.size && options.resize <= kMost) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("size is ", options.size, ", resize is ",
                                                 options.resize,
                                                 ": want 1 <= size <= resize <= ", kMost));
}

std::vector<KnownDataset> AllDatasets() {
  std::vector<KnownDataset> all;
  for (const Entry& entry : Entries()) all.push_back(entry.known);
  return all;
}

DataOptions DefaultOptions(const KnownDataset& known) {
  DataOptions options;
  options.name = known.name;
  options.text.tokens = known.tokens;
  if (known.has_ids()) options.text.loss_on = LossOn::kMasks;
  if (known.is_labelled) options.text.context = kSentenceContext;
  return options;
}

CorpusSize KnownSize(const DataOptions& options) {
  const absl::StatusOr<const Entry*> entry = Find(options.name);
  const TokenKind tokens = options.text.tokens;
  // Every vocabulary is the user's own.
  if (tokens == TokenKind::kWordPiece || tokens == TokenKind::kHf) return {};
  const bool is_official =
      options.verify || (tokens != TokenKind::kBpe && entry.ok() && !(*entry)->known.has_folder);
  return entry.ok() && (*entry)->known.is_text && is_official ? (*entry)->size(tokens)
                                                              : CorpusSize();
}

absl::StatusOr<DatasetInfo> DescribeData(const DataOptions& options) {
  ASSIGN_OR_RETURN(const Entry* entry, Find(options.name));
  if (entry->info != nullptr) return WithHeldOut(entry->info(options), options);
  const TextOptions& text = options.text;
  const CorpusSize size = text.size.is_known() ? text.size : KnownSize(options);
  if (!size.is_known()) {
    return absl::FailedPreconditionError(
        absl::StrCat("data ", options.name, ": its size is not known before it is read"));
  }
  if (entry->known.has_pictures) {
    RETURN_IF_ERROR(CheckImageOptions(options.images));
    return WithHeldOut(DescribePictures(options, size), options);
  }
  if (entry->known.is_labelled) return DescribeSentences(options, size);
  RETURN_IF_ERROR(CheckText(text));
  if (entry->known.has_documents) return WithHeldOut(DescribeDocuments(options, size), options);
  DatasetInfo info;
  info.name = options.name;
  info.is_text = true;
  info.sample = {1, text.context};
  info.classes = info.vocabulary = size.vocabulary;
  info.labels = text.context;
  info.hides_tokens = text.objective == Objective::kMasked;
  const int64_t held_out = HeldOutTokens(options);
  ASSIGN_OR_RETURN(info.train_samples,
                   SamplesOf(TrainingText(info.name, options),
                             std::max<int64_t>(0, size.train_tokens - held_out), text));
  ASSIGN_OR_RETURN(info.test_samples, SamplesOf(TestText(info.name, options),
                                                held_out > 0 ? held_out : size.test_tokens, text));
  if (text.windows > 0) info.train_samples = text.windows;
  return info;
}

absl::StatusOr<CorpusSize> MeasureCorpus(const DataOptions& options) {
  ASSIGN_OR_RETURN(const Entry* entry, Find(options.name));
  if (entry->measure != nullptr) return entry->measure(options);
  ASSIGN_OR_RETURN(const CorpusText text, ReadText(options));
  return SizeOf(text, options);
}

absl::StatusOr<DataSplits> LoadData(const DataOptions& options) {
  if (options.limit < 0 || options.test_limit < 0 || options.held_out < 0) {
    return absl::InvalidArgumentError(absl::StrCat("limit is ", options.limit, ", test_limit is ",
                                                   options.test_limit, ", held_out is ",
                                                   options.held_out, ": want 0 or more"));
  }
  ASSIGN_OR_RETURN(const Entry* entry, Find(options.name));
  const bool is_stream = entry->known.is_text && !entry->known.is_labelled;
  if (is_stream) RETURN_IF_ERROR(CheckText(options.text));
  if (entry->load != nullptr) return entry->load(options);
  ASSIGN_OR_RETURN(const CorpusText text, entry->read(options));
  return LoadText(text, options);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const DataOptions& options) {
  if (options.text.tokens == TokenKind::kIds) {
    return absl::InvalidArgumentError(
        absl::StrCat("data ", options.name, " is ids of a tokenizer that is not known: want ",
                     "data.tokens and data.vocabulary, those of the program that made them"));
  }
  if (options.text.tokens != TokenKind::kCharacters) return TokenizerOf(CorpusText(), options);
  ASSIGN_OR_RETURN(const Entry* entry, Find(options.name));
  if (entry->load == LoadTextFile) return TokenizerOfTextFile(options);
  ASSIGN_OR_RETURN(const CorpusText text, ReadText(options));
  return PlannedTokenizer(text, options);
}

}  // namespace thinwire
