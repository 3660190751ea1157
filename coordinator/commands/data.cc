// `thinwire data`: which data sets there are, how to get them, and texts as tokens.

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/enum_names.h"
#include "base/file.h"
#include "base/stand_in.h"
#include "base/status.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/flags.h"
#include "coordinator/data/fetch.h"
#include "coordinator/data/token_files.h"
#include "coordinator/session/exit_code.h"
#include "data/dataset.h"
#include "data/learn_word_pieces.h"
#include "data/official.h"
#include "data/word_piece.h"

namespace thinwire {
namespace {

struct DataFlags {
  std::string action;              // list, fetch, vocabulary, encode, decode
  std::vector<std::string> names;  // fetch: which; others: paths of texts or ids
  std::string dir;                 // where to; empty: data/NAME, or data/word-pieces
  std::string from;                // fetch: a mirror, see FetchOptions
  int64_t size = 0;                // vocabulary: number of tokens; 0: kVocabularySize
  bool cased = false;              // vocabulary: whether words keep case and accents
  std::string tokenizer;           // list, encode, decode: folder of a tokenizer
  std::string specials;            // encode: text or ids; empty: text
  std::string out;                 // encode, decode: file
};

constexpr int64_t kVocabularySize = 8192;
constexpr char kVocabularyDir[] = "data/word-pieces";

constexpr char kDataExamples[] =
    R"(Downloads by curl, unpacks by tar or unzip, and compares every file with the official
checksum. What was interrupted goes on where it ended.

`vocabulary` learns BERT's word pieces from texts and writes vocab.txt, for data.tokens: word_piece.
Equal texts give equal files.

`encode` writes the ids of a text by the tokenizer of a model's folder, little-endian, 16 bits each,
or 32 where there are more than 65536; `decode` writes or prints their text. `list` with
--vocabulary says what that tokenizer is.

Examples:
  thinwire data list
  thinwire data fetch cifar10
  thinwire data fetch wikitext2 gpt2-bpe
  thinwire data fetch cifar10 --dir /data/cifar10 --from https://mirror.example/datasets
  thinwire data vocabulary data/wikitext2/wiki.train.tokens --size 8192 --dir data/word-pieces
  thinwire data list --vocabulary models/Qwen2.5-0.5B
  thinwire data encode notes.txt --vocabulary models/Qwen2.5-0.5B --out train.bin
  thinwire data decode train.bin --vocabulary models/Qwen2.5-0.5B
Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
)";

const OfficialData* FindOfficial(const std::string& name) {
  for (const OfficialData& data : AllOfficialData()) {
    if (data.name == name) return &data;
  }
  return nullptr;
}

std::string DefaultDir(const std::string& name) { return absl::StrCat("data/", name); }

std::string Described(const OfficialData& data) {
  int64_t bytes = 0;
  for (const OfficialFile& file : data.files) bytes += file.bytes;
  std::string text = absl::StrFormat("%-13s %s; %d files, %.1f MB\n", data.name, data.what,
                                     data.files.size(), static_cast<double>(bytes) / 1e6);
  for (const OfficialSource& source : data.sources) {
    for (const std::string& address : source.files)
      absl::StrAppend(&text, "              ", address, "\n");
    if (!source.archive.empty()) absl::StrAppend(&text, "              ", source.archive, "\n");
  }
  return text;
}

std::string HowToGet(const KnownDataset& known) {
  if (known.has_pictures) return "pictures of your own, in folders by class: data.dir";
  if (known.has_documents) {
    return "documents of your own, one a line: data.file, or data.train and data.test";
  }
  if (known.has_ids()) return "token ids of your own: data.file, or data.train and data.test";
  if (known.has_file) return "a text of your own: data.file, or data.train and data.test";
  if (known.is_labelled) return "labelled sentences: data.task and data.dir";
  return "part of the program: nothing to fetch";
}

std::string List() {
  std::string text;
  for (const OfficialData& data : AllOfficialData()) absl::StrAppend(&text, Described(data));
  for (const KnownDataset& known : AllDatasets()) {
    if (FindOfficial(known.name) != nullptr) continue;
    absl::StrAppend(&text, absl::StrFormat("%-13s %s\n", known.name, HowToGet(known)));
  }
  return text;
}

// Checks that the data set called `name` can be fetched or needs no fetching.
absl::Status CheckName(const std::string& name) {
  std::vector<std::string> known;
  for (const OfficialData& data : AllOfficialData()) known.push_back(data.name);
  for (const KnownDataset& data : AllDatasets()) {
    if (!data.has_file && !data.has_folder && FindOfficial(data.name) == nullptr)
      known.push_back(data.name);
  }
  if (std::find(known.begin(), known.end(), name) != known.end()) return absl::OkStatus();
  return UnknownName("data fetch", name, known);
}

bool IsOfIds(const DataFlags& flags) {
  return flags.action == "encode" || flags.action == "decode";
}

absl::Status CheckTokenizerFlags(const DataFlags& flags) {
  if (IsOfIds(flags)) {
    const bool has_out = !flags.out.empty() || flags.action == "decode";
    const bool has_others = !flags.dir.empty() || !flags.from.empty();
    if (flags.names.size() == 1 && !flags.tokenizer.empty() && has_out && !has_others) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat("data ", flags.action, ": want the path of ",
                                                   flags.action == "encode"
                                                       ? "a text, --vocabulary and --out"
                                                       : "a file of ids and --vocabulary",
                                                   ", and no --dir or --from"));
  }
  if (!flags.out.empty() || !flags.specials.empty()) {
    return absl::InvalidArgumentError("--out and --specials are for data encode and decode");
  }
  if (flags.tokenizer.empty() || flags.action == "list") return absl::OkStatus();
  return absl::InvalidArgumentError("--vocabulary is for data list, encode and decode");
}

absl::Status CheckFlags(const DataFlags& flags) {
  RETURN_IF_ERROR(CheckTokenizerFlags(flags));
  if (flags.action == "vocabulary") {
    if (!flags.names.empty() && flags.from.empty() && flags.size >= 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "data vocabulary: want paths of texts, no --from, and a --size of at least 0");
  }
  if (flags.size != 0 || flags.cased) {
    return absl::InvalidArgumentError("--size and --cased are for data vocabulary");
  }
  if (IsOfIds(flags)) return absl::OkStatus();
  if (flags.action == "list") {
    if (flags.names.empty() && flags.dir.empty() && flags.from.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("data list takes no names, --dir or --from");
  }
  if (flags.names.empty()) {
    return absl::InvalidArgumentError("data fetch: want a name; `thinwire data list` has them");
  }
  if (flags.names.size() > 1 && !flags.dir.empty()) {
    return absl::InvalidArgumentError("data fetch: --dir is for one name");
  }
  for (const std::string& name : flags.names) {
    const absl::Status known = CheckName(name);
    if (!known.ok()) return known;
  }
  return absl::OkStatus();
}

ExitCode Fetch(const std::string& name, const DataFlags& flags, Interruption* interruption) {
  const OfficialData* data = FindOfficial(name);
  if (data == nullptr) {
    return PrintResult(absl::StrCat(name, " is part of the program: nothing to fetch\n"));
  }
  FetchOptions options;
  options.dir = flags.dir.empty() ? DefaultDir(name) : flags.dir;
  options.from = flags.from;
  options.shows_progress = isatty(STDERR_FILENO) == 1;
  const absl::StatusOr<std::string> folder = FetchData(*data, options, interruption);
  if (absl::IsCancelled(folder.status())) return kExitInterrupted;
  if (!folder.ok()) return Complain(folder.status(), kExitFailed);
  return PrintResult(
      absl::StrCat(name, ": ", data->files.size(), " files in ", *folder, ", verified\n"));
}

absl::StatusOr<std::string> WriteVocabulary(const DataFlags& flags) {
  std::vector<std::string> texts;
  for (const std::string& path : flags.names) {
    ASSIGN_OR_RETURN(std::string text, ReadFile(path));
    RETURN_IF_ERROR(CheckNoStandIn(path, text));
    texts.push_back(std::move(text));
  }
  const int64_t size = flags.size > 0 ? flags.size : kVocabularySize;
  ASSIGN_OR_RETURN(const std::string lines,
                   LearnWordPieces({texts.begin(), texts.end()}, !flags.cased, size));
  const std::string dir = flags.dir.empty() ? kVocabularyDir : flags.dir;
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) return FileError(dir, "cannot make the folder", error.value());
  const std::string path = absl::StrCat(dir, "/", kWordPieceFile);
  RETURN_IF_ERROR(ReplaceFile(path, lines));
  return absl::StrCat(path, ": ", std::count(lines.begin(), lines.end(), '\n'), " tokens\n");
}

// Returns what encoding or decoding prints.
absl::StatusOr<std::string> OfIds(const DataFlags& flags) {
  const Specials specials =
      flags.specials == Name(Specials::kIds) ? Specials::kIds : Specials::kText;
  ASSIGN_OR_RETURN(const auto tokenizer, OpenTokenizer(flags.tokenizer, specials));
  if (flags.action == "encode") return EncodeFile(flags.names[0], *tokenizer, flags.out);
  ASSIGN_OR_RETURN(const std::string text, DecodeFile(flags.names[0], *tokenizer));
  if (flags.out.empty()) return text;
  RETURN_IF_ERROR(ReplaceFile(flags.out, text));
  return absl::StrCat(flags.out, ": ", text.size(), " bytes\n");
}

ExitCode Printed(const absl::StatusOr<std::string>& result) {
  return result.ok() ? PrintResult(*result) : Complain(result.status(), kExitFailed);
}

int DataCommand(const DataFlags& flags, Interruption* interruption) {
  const absl::Status usage = CheckFlags(flags);
  if (!usage.ok()) return Complain(usage, kExitUsage);
  if (!flags.tokenizer.empty() && flags.action == "list") {
    return Printed(DescribeTokenizer(flags.tokenizer));
  }
  if (flags.action == "list") return PrintResult(List());
  if (flags.action == "vocabulary") return Printed(WriteVocabulary(flags));
  if (IsOfIds(flags)) return Printed(OfIds(flags));
  for (const std::string& name : flags.names) {
    const ExitCode code = Fetch(name, flags, interruption);
    if (code != kExitDone) return code;
  }
  return kExitDone;
}

}  // namespace

Command AddData(CLI::App* app) {
  const auto flags = std::make_shared<DataFlags>();
  CLI::App* data = app->add_subcommand(
      "data", "list data sets, download official ones, or turn texts to tokens");
  data->footer(kDataExamples);
  data->add_option("ACTION", flags->action, "list, fetch, vocabulary, encode or decode")
      ->required()
      ->check(CLI::IsMember({"list", "fetch", "vocabulary", "encode", "decode"}));
  data->add_option("NAMES", flags->names,
                   "fetch: data sets, or gpt2-bpe, GPT-2's vocabulary; vocabulary: paths of texts; "
                   "encode: the path of a text; decode: that of ids");
  data->add_option("--size", flags->size, "vocabulary: number of tokens (default: 8192)");
  data->add_flag("--cased", flags->cased,
                 "vocabulary: words keep case and accents (data.lowercase: false)");
  data->add_option("--dir", flags->dir,
                   "folder of the files (default: data/NAME, or data/word-pieces)")
      ->transform(kPath);
  data->add_option("--from", flags->from,
                   "fetch: a mirror, a folder or an address below which the archive, or the files, "
                   "have their official names")
      ->transform(kPath);
  data->add_option("--vocabulary", flags->tokenizer,
                   "list, encode, decode: folder with a tokenizer.json, or a run's model")
      ->transform(kPath);
  data->add_option("--specials", flags->specials,
                   "encode: what spells a special token is text, or the token's id")
      ->check(CLI::IsMember({"text", "ids"}));
  data->add_option("--out", flags->out, "encode, decode: the file to write")->transform(kPath);
  return {data, [flags](Interruption* interruption) { return DataCommand(*flags, interruption); }};
}

}  // namespace thinwire
