#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/enum_names.h"
#include "base/hub_cache.h"
#include "base/path.h"
#include "base/status.h"
#include "config/checks.h"
#include "config/choices.h"
#include "config/sections.h"
#include "config/specs.h"
#include "data/chat_template.h"
#include "data/hf_files.h"
#include "data/vocabulary_folder.h"

namespace thinwire {
namespace {

constexpr uint32_t kMaxBatchSize = 1 << 20;
constexpr uint32_t kMaxContext = 1 << 20;
constexpr uint32_t kMaxWindows = 1u << 31;
constexpr char kVocabulary[] = "data/gpt2-bpe";
constexpr char kWordPieces[] = "data/word-pieces";

absl::Status CheckLimit(const std::string& path, uint64_t limit, int64_t samples) {
  if (limit <= static_cast<uint64_t>(samples)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", limit, ", want at most ", samples, ", the samples there are"));
}

absl::Status ResolveAugment(DataConfig* data) {
  if (data->augment() == "true") data->set_augment(Name(AugmentKind::kPerEpoch));
  if (data->augment() == "false") data->set_augment(Name(AugmentKind::kNone));
  std::vector<std::string> augmentations = NamesOf(AllOf<AugmentKind>());
  augmentations.insert(augmentations.end(), {"true", "false"});
  return CheckName("data.augment", "augmentation", data->augment(), augmentations);
}

absl::Status ResolveEndOfText(const KnownDataset& known, DataConfig* data) {
  if (!data->has_end_of_text()) {
    const bool is_old = data->has_corpus() && MayPredateEndOfText(known);
    data->set_end_of_text(Name(is_old ? EndOfText::kCharacters : EndOfText::kToken));
  }
  return CheckName("data.end_of_text", "end of text", data->end_of_text(),
                   NamesOf(AllOf<EndOfText>()));
}

absl::Status WantsTokens(const char* field, const std::string& value, const char* tokens) {
  return absl::InvalidArgumentError(
      absl::StrCat("data.", field, ": ", value, ", want data.tokens: ", tokens, " with it"));
}

absl::Status ResolveSpecials(DataConfig* data) {
  if (!data->has_specials()) data->set_specials(Name(Specials::kText));
  RETURN_IF_ERROR(CheckName("data.specials", "meaning of special tokens", data->specials(),
                            NamesOf(AllOf<Specials>())));
  if (data->has_vocabulary()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "data.vocabulary: is required with data.tokens: hf, a folder with tokenizer.json, unless "
      "that of init has one");
}

absl::Status ResolveVocabulary(const KnownDataset& known, TokenKind tokens, DataConfig* data) {
  const bool is_bpe = tokens == TokenKind::kBpe, is_pieces = tokens == TokenKind::kWordPiece;
  const bool is_hf = tokens == TokenKind::kHf;
  if (!is_pieces && data->has_lowercase()) {
    return WantsTokens("lowercase", data->lowercase() ? "true" : "false", "word_piece");
  }
  if (!is_bpe && data->has_end_of_text()) {
    return WantsTokens("end_of_text", data->end_of_text(), "bpe");
  }
  if (!is_hf && data->has_specials()) return WantsTokens("specials", data->specials(), "hf");
  if (is_hf) return ResolveSpecials(data);
  if (!is_bpe && !is_pieces) {
    if (!data->has_vocabulary()) return absl::OkStatus();
    return WantsTokens("vocabulary", data->vocabulary(), "bpe, word_piece or hf");
  }
  if (!data->has_vocabulary()) data->set_vocabulary(is_bpe ? kVocabulary : kWordPieces);
  return is_bpe ? ResolveEndOfText(known, data) : absl::OkStatus();
}

absl::Status CheckObjective(TokenKind tokens, const DataConfig& data) {
  if (!data.has_objective()) {
    if (!data.has_mask_rate()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("data.mask_rate: ", data.mask_rate(),
                                                   ", want data.objective: masked with it"));
  }
  RETURN_IF_ERROR(
      CheckName("data.objective", "objective", data.objective(), NamesOf(AllOf<Objective>())));
  if (data.objective() == Name(Objective::kNext)) return absl::OkStatus();
  if (tokens != TokenKind::kWordPiece) {
    return WantsTokens("objective", data.objective(), "word_piece");
  }
  if (!data.has_mask_rate()) return absl::OkStatus();
  return CheckValue(data.mask_rate() > 0 && data.mask_rate() < 1, "data.mask_rate",
                    data.mask_rate(), "more than 0 and less than 1");
}

absl::Status CheckCorpus(const CorpusConfig& corpus, bool is_samples) {
  const bool has_tokens = corpus.has_train_tokens() && corpus.has_test_tokens();
  const bool has_samples = corpus.train_samples() >= 1 && corpus.test_samples() >= 1;
  if (corpus.vocabulary() >= 1 && (is_samples ? has_samples : has_tokens)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      is_samples ? "data.corpus: want vocabulary, train_samples and test_samples (at least 1)"
                 : "data.corpus: want vocabulary (at least 1), train_tokens and test_tokens");
}

absl::Status CountCorpus(const DataOptions& options, CorpusConfig* corpus) {
  const absl::StatusOr<CorpusSize> size = MeasureCorpus(options);
  if (!size.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("data: ", size.status().message(),
                     "; to resolve this without the text, give data.corpus its size"));
  }
  *corpus = CorpusFrom(*size);
  return absl::OkStatus();
}

// Checks that data without one text have no tokens of it, and that a text has tokens.
absl::Status CheckKind(const KnownDataset& known, TokenKind tokens) {
  const char* wanted = nullptr;
  if (known.has_ids()) {
    if (tokens == TokenKind::kCharacters) wanted = "ids, or the tokens of which they are";
  } else if (tokens == TokenKind::kIds) {
    wanted = "tokens of the text; data tokens has ids alone";
  } else if (known.has_documents && tokens == TokenKind::kCharacters) {
    wanted = "tokens that every document has, such as hf, bpe or bytes";
  }
  if (wanted == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("data.tokens: ", Name(tokens), ", want ", wanted));
}

absl::Status CheckLossOn(const KnownDataset& known, const DataConfig& data) {
  const std::vector<LossOn> of_documents = {LossOn::kAnswers, LossOn::kAll};
  return CheckName("data.loss_on", "loss", data.loss_on(),
                   NamesOf(known.has_ids() ? AllOf<LossOn>() : of_documents));
}

absl::Status ResolveTokens(const KnownDataset& known, DataConfig* data) {
  if (known.is_labelled) {
    RETURN_IF_ERROR(CheckName("data.task", "task", data->task(), NamesOf(AllOf<GlueTask>())));
    return ResolveVocabulary(known, known.tokens, data);
  }
  TokenKind tokens{};
  RETURN_IF_ERROR(
      CheckName("data.tokens", "kind of tokens", data->tokens(), NamesOf(AllOf<TokenKind>())));
  RETURN_IF_ERROR(FromName(data->tokens(), &tokens));
  RETURN_IF_ERROR(CheckKind(known, tokens));
  if (data->has_type()) {
    RETURN_IF_ERROR(CheckName("data.type", "type", data->type(), NamesOf(AllOf<IdType>())));
  }
  if (data->has_loss_on()) RETURN_IF_ERROR(CheckLossOn(known, *data));
  RETURN_IF_ERROR(ResolveVocabulary(known, tokens, data));
  return CheckObjective(tokens, *data);
}

// Checks that the user's files are one, or one for training and one for test.
absl::Status CheckFiles(const DataConfig& data) {
  if (data.has_file() && (data.has_train() || data.has_test())) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.file: ", data.file(), ", want either it or data.train and data.test"));
  }
  if (data.has_train() != data.has_test()) {
    return absl::InvalidArgumentError(data.has_train() ? "data.test: is required with data.train"
                                                       : "data.train: is required with data.test");
  }
  if (data.has_file() || data.has_train()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("data.file: is required with name ", data.name(),
                                                 ", or data.train and data.test"));
}

// Puts the format of the template in the vocabulary's folder in the place of `auto`. What else the
// experiment says of the format stays.
absl::Status ResolveChat(DataConfig* data) {
  if (data->chat().kind() != Name(ChatKind::kAuto)) return absl::OkStatus();
  if (data->tokens() != Name(TokenKind::kHf)) return WantsTokens("chat", "auto", "hf");
  ASSIGN_OR_RETURN(const DataOptions options, DataOptionsFrom(*data));
  ASSIGN_OR_RETURN(const std::string folder, VocabularyFolder(options.text));
  ASSIGN_OR_RETURN(const ChatFormat format, Annotated(FormatOfTemplate(folder), "data.chat: auto"));
  ChatConfig* const chat = data->mutable_chat();
  chat->set_kind(Name(format.kind));
  const bool inserts = !format.default_system.empty() && !chat->has_default_system();
  if (inserts) chat->set_default_system(format.default_system);
  return absl::OkStatus();
}

absl::Status CheckDocuments(const DataConfig& data) {
  RETURN_IF_ERROR(Annotated(CheckExampleKeys(KeysFrom(data.fields())), "data.fields"));
  if (data.has_on_error()) {
    RETURN_IF_ERROR(
        CheckName("data.on_error", "choice", data.on_error(), NamesOf(AllOf<OnError>())));
  }
  RETURN_IF_ERROR(CheckName("data.packing", "packing", data.packing(), NamesOf(AllOf<Packing>())));
  RETURN_IF_ERROR(CheckName("data.too_long", "choice", data.too_long(), NamesOf(AllOf<TooLong>())));
  const ChatConfig& chat = data.chat();
  if (chat.has_kind()) {
    RETURN_IF_ERROR(CheckName("data.chat.kind", "format", chat.kind(), NamesOf(AllOf<ChatKind>())));
  }
  if (!data.has_chat()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ChatFormat format, ChatFrom(chat));
  if (format.kind != ChatKind::kNone && data.tokens() == Name(TokenKind::kWordPiece)) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.chat: ", Name(format.kind),
                     " with data.tokens: word_piece, which loses spaces and lines; want hf, bpe or "
                     "bytes with it"));
  }
  return Annotated(CheckChatFormat(format), "data.chat");
}

absl::Status ResolveText(const KnownDataset& known, DataConfig* data) {
  if (known.has_file) RETURN_IF_ERROR(CheckFiles(*data));
  RETURN_IF_ERROR(ResolveTokens(known, data));
  RETURN_IF_ERROR(CheckValue(data->context() >= 1 && data->context() <= kMaxContext, "data.context",
                             data->context(), absl::StrCat("1 to ", kMaxContext)));
  RETURN_IF_ERROR(CheckValue(data->windows() <= kMaxWindows, "data.windows", data->windows(),
                             absl::StrCat("0 to ", kMaxWindows)));
  if (data->windows() > 0 && data->augment() == Name(AugmentKind::kNone)) {
    return absl::InvalidArgumentError(
        "data.augment: none, want fixed or per_epoch with data.windows");
  }
  if (data->has_split()) {
    RETURN_IF_ERROR(CheckValue(data->split() > 0 && data->split() < 1, "data.split", data->split(),
                               "more than 0 and less than 1"));
  }
  if (known.has_documents) {
    RETURN_IF_ERROR(ResolveChat(data));
    RETURN_IF_ERROR(CheckDocuments(*data));
  }
  if (data->has_corpus()) {
    return CheckCorpus(data->corpus(), known.is_labelled || known.has_documents);
  }
  ASSIGN_OR_RETURN(const DataOptions options, DataOptionsFrom(*data));
  if (KnownSize(options).vocabulary > 0) return absl::OkStatus();
  return CountCorpus(options, data->mutable_corpus());
}

absl::Status CheckLabels(const DataConfig& data) {
  if (!data.has_labels()) return absl::OkStatus();
  return CheckName("data.labels", "labels", data.labels(), NamesOf(AllOf<CifarLabels>()));
}

absl::Status ResolvePictures(DataConfig* data) {
  RETURN_IF_ERROR(CheckName("data.crop", "crop", data->crop(), NamesOf(AllOf<PictureCrop>())));
  RETURN_IF_ERROR(CheckName("data.normalize", "normalization", data->normalize(),
                            NamesOf(AllOf<PictureNormalize>())));
  ASSIGN_OR_RETURN(const DataOptions options, DataOptionsFrom(*data));
  RETURN_IF_ERROR(Annotated(CheckImageOptions(options.images), "data"));
  if (!data->has_corpus()) return CountCorpus(options, data->mutable_corpus());
  const CorpusConfig& corpus = data->corpus();
  if (corpus.classes() >= 1 && corpus.train_samples() >= 1 && corpus.test_samples() >= 1) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "data.corpus: want classes, train_samples and test_samples (at least 1)");
}

// Returns whether the data have no vocabulary of their own, or that of `init` by its path or its
// name in the hub.
bool HasVocabularyOfInit(const Experiment& experiment) {
  const std::string& vocabulary = experiment.data().vocabulary();
  return !experiment.data().has_vocabulary() || vocabulary == experiment.init() ||
         vocabulary == HubIdOr(experiment.init());
}

}  // namespace

void TakeTokensOfInit(Experiment* experiment) {
  DataConfig& data = *experiment->mutable_data();
  const absl::StatusOr<KnownDataset> known = KnownDatasetOf(data);
  const bool is_text = known.ok() && known->is_text && !known->is_labelled;
  if (!is_text || !experiment->has_init() || !HasVocabularyOfInit(*experiment)) return;
  const bool is_open = !data.has_tokens() && !data.has_end_of_text() && !data.has_lowercase();
  if (!is_open && data.tokens() != Name(TokenKind::kHf)) return;
  std::error_code ignored;  // whoever reads the folder reports it
  const std::string folder = WithHome(experiment->init());
  if (!std::filesystem::exists(absl::StrCat(folder, "/", kTokenizerFile), ignored)) return;
  data.set_tokens(Name(TokenKind::kHf));
  if (!data.has_vocabulary()) data.set_vocabulary(experiment->init());
}

absl::Status ResolveData(DataConfig* data) {
  if (!data->has_name()) return absl::InvalidArgumentError("data.name: is required");
  ASSIGN_OR_RETURN(const KnownDataset known, KnownDatasetOf(*data));
  RETURN_IF_ERROR(ResolveChoice("data", data));
  if (known.has_folder && !data->has_dir()) data->set_dir(absl::StrCat("data/", data->name()));
  RETURN_IF_ERROR(ResolveAugment(data));
  RETURN_IF_ERROR(CheckLabels(*data));
  if (known.is_text) RETURN_IF_ERROR(ResolveText(known, data));
  if (known.has_pictures) RETURN_IF_ERROR(ResolvePictures(data));
  RETURN_IF_ERROR(CheckValue(data->batch_size() >= 1 && data->batch_size() <= kMaxBatchSize,
                             "data.batch_size", data->batch_size(),
                             absl::StrCat("1 to ", kMaxBatchSize)));
  RETURN_IF_ERROR(
      CheckName("data.shuffle", "shuffle", data->shuffle(), NamesOf(AllOf<ShuffleKind>())));
  ASSIGN_OR_RETURN(const DatasetInfo info, DatasetOf(*data));
  RETURN_IF_ERROR(CheckLimit("data.limit", data->limit(), info.train_samples));
  return CheckLimit("data.test_limit", data->test_limit(), info.test_samples);
}

}  // namespace thinwire
