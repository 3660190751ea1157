#include "data/jsonl.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/status.h"
#include "data/document_dataset.h"
#include "data/document_encoder.h"
#include "data/document_store.h"
#include "data/example.h"
#include "data/file_list.h"
#include "data/held_out.h"
#include "data/lines.h"
#include "data/temporary_file.h"
#include "data/text.h"

namespace thinwire {
namespace {

// Encoded files.
struct Encoded {
  std::shared_ptr<const DocumentStore> store;
  std::string folder;  // of the first one
  std::string digest;  // of their contents and of how they were encoded
};

// Documents for training or for test.
struct Part {
  std::string name;  // for messages
  DocumentPart of;
};

struct Corpus {
  std::unique_ptr<Tokenizer> tokenizer;
  Part train, test;
};

std::string IdOrNone(std::optional<int32_t> id) { return id ? absl::StrCat(*id) : "none"; }

// Returns a digest of all that documents depend on besides the files.
std::string DigestOf(const Tokenizer& tokenizer, const TextOptions& text) {
  const ChatFormat& chat = text.chat;
  std::string all =
      absl::StrCat(tokenizer.digest(), " ", IdOrNone(tokenizer.begin_of_text()), " ",
                   IdOrNone(tokenizer.end_of_text()), " ", Name(text.loss_on), " ",
                   Name(text.specials), " ", Name(chat.kind), chat.trim ? " trim" : "");
  for (const std::string* part :
       {&chat.begin, &chat.system, &chat.user, &chat.assistant, &chat.end, &chat.default_system}) {
    absl::StrAppend(&all, " ", part->size(), " ", *part);
  }
  if (text.on_error == OnError::kSkip) absl::StrAppend(&all, " skip");
  const ExampleKeys& keys = text.keys;
  if (!(keys == ExampleKeys())) {
    for (const std::string* key : {&keys.text, &keys.prompt, &keys.completion, &keys.messages}) {
      absl::StrAppend(&all, " ", key->size(), " ", *key);
    }
  }
  return Sha256(all);
}

absl::StatusOr<std::string> DigestOfFiles(const std::vector<std::string>& files) {
  Sha256Stream all;
  for (const std::string& path : files) {
    Sha256Stream file;
    RETURN_IF_ERROR(ReadFile(path, [&file](std::string_view piece) {
      file.Add(piece);
      return absl::OkStatus();
    }));
    all.Add(file.Digest());
  }
  return all.Digest();
}

bool IsBlank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

// Lines that were left out.
struct Skipped {
  int64_t lines = 0;
  std::string first;  // "lines.jsonl:3: byte 9 is no JSON"

  void Add(const std::string& path, int64_t number, const absl::Status& status) {
    if (lines++ > 0) return;
    first = absl::StrCat(std::filesystem::path(path).filename().string(), ":", number, ": ",
                         status.message());
  }
};

// Returns "3 lines.jsonl:3: byte 9 is no JSON", or nothing where no line was left out.
std::string NoteOf(const Skipped& skipped) {
  return skipped.lines == 0 ? "" : absl::StrCat(skipped.lines, " ", skipped.first);
}

// Returns what NoteOf wrote.
Skipped SkippedOf(const std::string& note) {
  const size_t space = note.find(' ');
  Skipped skipped;
  if (space == std::string::npos || !absl::SimpleAtoi(note.substr(0, space), &skipped.lines)) {
    return {};
  }
  skipped.first = note.substr(space + 1);
  return skipped;
}

// Encodes documents, many at a time, and hands them on in their order.
class Batches {
 public:
  Batches(const DocumentEncoder& encoder, const DocumentStore::Sink& sink)
      : encoder_(encoder), sink_(sink) {}

  absl::Status Add(DocumentEncoder::Written written, size_t line_bytes) {
    waiting_.push_back(std::move(written));
    bytes_ += line_bytes;
    return bytes_ < kBatchBytes ? absl::OkStatus() : Flush();
  }
  absl::Status Flush() {
    ASSIGN_OR_RETURN(const auto documents, encoder_.Encode(waiting_));
    waiting_.clear();
    bytes_ = 0;
    for (const auto& tokens : documents) RETURN_IF_ERROR(sink_(tokens));
    return absl::OkStatus();
  }

 private:
  static constexpr size_t kBatchBytes = size_t{1} << 20;

  const DocumentEncoder& encoder_;
  const DocumentStore::Sink& sink_;
  std::vector<DocumentEncoder::Written> waiting_;
  size_t bytes_ = 0;  // of the lines that these come from
};

// Encodes files, line by line.
class Lines {
 public:
  Lines(const Tokenizer& tokenizer, const TextOptions& text)
      : encoder_(&tokenizer, text.chat, text.loss_on),
        keys_(text.keys),
        skips_(text.on_error == OnError::kSkip) {}

  // Hands the documents of the files to the sink, and adds up what is left out.
  absl::Status Encode(const std::vector<std::string>& files, const DocumentStore::Sink& sink,
                      Skipped* skipped) const {
    Batches batches(encoder_, sink);
    for (const std::string& path : files) {
      int64_t number = 0;
      RETURN_IF_ERROR(ForEachLine(path, [&](std::string_view line) -> absl::Status {
        ++number;
        if (IsBlank(line)) return absl::OkStatus();
        absl::StatusOr<DocumentEncoder::Written> written = Written(line);
        if (written.ok()) return batches.Add(*std::move(written), line.size());
        if (!skips_) return written.status();
        skipped->Add(path, number, written.status());
        return absl::OkStatus();
      }));
    }
    return batches.Flush();
  }

 private:
  absl::StatusOr<DocumentEncoder::Written> Written(std::string_view line) const {
    ASSIGN_OR_RETURN(Example example, ParseExample(line, keys_));
    return encoder_.Write(std::move(example));
  }

  const DocumentEncoder encoder_;
  const ExampleKeys& keys_;
  const bool skips_;
};

absl::StatusOr<Encoded> EncodedAt(const std::string& field, const std::string& path,
                                  const Tokenizer& tokenizer, const TextOptions& text) {
  ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesAt(field, path));
  ASSIGN_OR_RETURN(const std::string contents, DigestOfFiles(files));
  Encoded encoded;
  encoded.digest = Sha256(absl::StrCat(contents, DigestOf(tokenizer, text)));
  const Lines lines(tokenizer, text);
  std::string note;
  const auto encode = [&](const DocumentStore::Sink& sink) {
    Skipped skipped;
    const absl::Status status = lines.Encode(files, sink, &skipped);
    note = NoteOf(skipped);
    return status;
  };
  encoded.folder = FolderOf(files[0]);
  ASSIGN_OR_RETURN(encoded.store, DocumentStore::Open(encoded.folder, encoded.digest,
                                                      tokenizer.vocabulary(), encode, note));
  return encoded;
}

Part WholeOf(const std::string& name, Encoded encoded) {
  const SampleRange all = {0, encoded.store->documents()};
  return {name, {std::move(encoded.store), all, encoded.folder, encoded.digest}};
}

absl::StatusOr<Corpus> OpenCorpus(const DataOptions& options) {
  const TextOptions& text = options.text;
  RETURN_IF_ERROR(CheckChatFormat(text.chat));
  RETURN_IF_ERROR(CheckExampleKeys(text.keys));
  Corpus corpus;
  ASSIGN_OR_RETURN(corpus.tokenizer, TokenizerOf(CorpusText(), options));
  const bool is_one = text.train.empty();
  const std::string& path = is_one ? text.file : text.train;
  ASSIGN_OR_RETURN(Encoded train,
                   EncodedAt(is_one ? "data.file" : "data.train", path, *corpus.tokenizer, text));
  corpus.train = WholeOf(path, std::move(train));
  if (!is_one) {
    ASSIGN_OR_RETURN(Encoded test, EncodedAt("data.test", text.test, *corpus.tokenizer, text));
    corpus.test = WholeOf(text.test, std::move(test));
    return corpus;
  }
  corpus.test = corpus.train;
  SampleRange &train_range = corpus.train.of.documents, &test_range = corpus.test.of.documents;
  const auto share = static_cast<double>(train_range.last) * text.split;
  test_range.first = train_range.last = static_cast<int64_t>(share);
  return corpus;
}

absl::StatusOr<std::unique_ptr<DocumentDataset>> SamplesOf(const Part& part,
                                                           const Tokenizer& tokenizer,
                                                           const TextOptions& text) {
  DocumentSamples samples;
  samples.context = text.context;
  samples.vocabulary = tokenizer.vocabulary();
  samples.packing = text.packing;
  samples.too_long = text.too_long;
  samples.filler = tokenizer.end_of_text().value_or(0);
  ASSIGN_OR_RETURN(auto data, DocumentDataset::Make(part.of, samples));
  if (data->size() > 0) return data;
  const int64_t documents = part.of.documents.last - part.of.documents.first;
  return absl::InvalidArgumentError(
      absl::StrCat("the ", documents, " documents of ", part.name,
                   " that are for this have no token to learn in samples of ", text.context,
                   " (data.context, data.loss_on, data.too_long): want one at least"));
}

// Data sets before limits and held-out samples.
struct Whole {
  std::unique_ptr<DocumentDataset> train, test;
  CorpusSize size() const {
    CorpusSize size;
    size.vocabulary = train->classes();
    size.train_samples = train->size();
    size.test_samples = test->size();
    return size;
  }
};

void AddSkipped(const Part& part, CorpusSize* size) {
  Skipped skipped = SkippedOf(part.of.store->note());
  size->skipped_lines += skipped.lines;
  if (size->first_skipped.empty()) size->first_skipped = std::move(skipped.first);
}

absl::StatusOr<Whole> WholeOf(const Corpus& corpus, const TextOptions& text) {
  Whole whole;
  ASSIGN_OR_RETURN(whole.train, SamplesOf(corpus.train, *corpus.tokenizer, text));
  ASSIGN_OR_RETURN(whole.test, SamplesOf(corpus.test, *corpus.tokenizer, text));
  return whole;
}

}  // namespace

absl::StatusOr<CorpusSize> MeasureJsonl(const DataOptions& options) {
  ASSIGN_OR_RETURN(const Corpus corpus, OpenCorpus(options));
  ASSIGN_OR_RETURN(const Whole whole, WholeOf(corpus, options.text));
  CorpusSize size = whole.size();
  AddSkipped(corpus.train, &size);
  if (corpus.test.of.store != corpus.train.of.store) AddSkipped(corpus.test, &size);
  return size;
}

absl::StatusOr<DataSplits> LoadJsonl(const DataOptions& options) {
  ASSIGN_OR_RETURN(const Corpus corpus, OpenCorpus(options));
  ASSIGN_OR_RETURN(Whole whole, WholeOf(corpus, options.text));
  RETURN_IF_ERROR(CheckPlannedSamples(corpus.train.name, whole.size(), options.text.size));
  const std::string what = absl::StrCat("the training documents of ", corpus.train.name);
  ASSIGN_OR_RETURN(const ImageParts parts, PartsOf(what, whole.train->size(), options));
  if (options.held_out > 0) {
    ASSIGN_OR_RETURN(whole.test, SamplesOf(corpus.train, *corpus.tokenizer, options.text));
    whole.test->Keep(parts.held_out);
  } else {
    const int64_t tests = whole.test->size();
    RETURN_IF_ERROR(CheckLimit(absl::StrCat("the test documents of ", corpus.test.name), tests,
                               options.test_limit));
    whole.test->Keep(FirstOf(tests, options.test_limit));
  }
  whole.train->Keep(parts.train);
  return DataSplits{std::move(whole.train), std::move(whole.test)};
}

}  // namespace thinwire
