#include "data/glue.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/stand_in.h"
#include "base/status.h"
#include "data/held_out.h"
#include "data/official.h"
#include "data/sentences.h"
#include "data/unicode.h"
#include "data/vocabulary_folder.h"
#include "data/word_piece.h"

namespace thinwire {
namespace {

constexpr size_t kNoColumn = SIZE_MAX;
constexpr double kScoreUnit = 0x1p-28, kMostScore = 5;

// A task as its files have it.
struct Format {
  const char* folder;
  std::vector<std::string> columns;
  bool has_header;
  size_t first, second, label;           // numbers of columns
  std::vector<std::string> labels;       // class by class; empty: scores
  std::vector<OfficialFile> files = {};  // train.tsv, dev.tsv
  GlueMeasures measures = {};

  bool is_pair() const { return second != kNoColumn; }
  bool has_scores() const { return labels.empty(); }
};

Format FormatOf(GlueTask task) {
  switch (task) {
    case GlueTask::kCola:
      return {"CoLA",
              {"source", "label", "mark", "sentence"},
              /*has_header=*/false,
              /*first=*/3,
              kNoColumn,
              /*label=*/1,
              {"0", "1"},
              OfficialDataOf("glue-cola").files,
              {/*f1=*/false, /*matthews=*/true}};
    case GlueTask::kMrpc:
      return {
          "MRPC",
          {"Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"},
          /*has_header=*/true,
          /*first=*/3,
          /*second=*/4,
          /*label=*/0,
          {"0", "1"},
          {{"train.tsv", 941471,
            "69abcedee3cf738c6ce58d772e43e1b7cdf5b4edee4aceda459c0d9f4e5599f3"},
           {"dev.tsv", 105616, "9e8f284788040f7c9ecde2e1b3c07237c756f926bd9ef8548ef5d34b56f69f17"}},
          {/*f1=*/true, /*matthews=*/false}};
    case GlueTask::kRte:
      return {"RTE",
              {"index", "sentence1", "sentence2", "label"},
              /*has_header=*/true,
              /*first=*/1,
              /*second=*/2,
              /*label=*/3,
              {"entailment", "not_entailment"},
              OfficialDataOf("glue-rte").files};
    case GlueTask::kStsb:
      return {"STS-B",
              {"index", "genre", "filename", "year", "old_index", "source1", "source2", "sentence1",
               "sentence2", "score"},
              /*has_header=*/true,
              /*first=*/7,
              /*second=*/8,
              /*label=*/9,
              /*labels=*/{},
              OfficialDataOf("glue-stsb").files,
              {/*f1=*/false, /*matthews=*/false, /*correlations=*/true}};
    case GlueTask::kSst2:
      break;
  }
  return {"SST-2",
          {"sentence", "label"},
          /*has_header=*/true,
          /*first=*/0,
          kNoColumn,
          /*label=*/1,
          {"0", "1"},
          OfficialDataOf("glue-sst2").files};
}

// A row of a file as it is there.
struct Row {
  std::string first, second;
  int32_t label = 0;
};

absl::Status BadLine(const std::string& path, size_t line, const std::string& problem) {
  return absl::InvalidArgumentError(absl::StrCat(path, ", line ", line, ": ", problem));
}

// Returns the label that a cell spells: the number of a class, or a score in kScoreUnit.
absl::StatusOr<int32_t> LabelOf(const std::string& spelled, const Format& format,
                                const std::string& path, size_t line) {
  const std::string met =
      absl::StrCat(format.columns[format.label], " is \"", spelled, "\", want ");
  if (format.has_scores()) {
    double score = 0;
    if (absl::SimpleAtod(spelled, &score) && score >= 0 && score <= kMostScore) {
      return static_cast<int32_t>(std::lround(score / kScoreUnit));
    }
    return BadLine(path, line, absl::StrCat(met, "a number from 0 to ", kMostScore));
  }
  const auto label = std::find(format.labels.begin(), format.labels.end(), spelled);
  if (label != format.labels.end()) return static_cast<int32_t>(label - format.labels.begin());
  return BadLine(path, line, met + absl::StrJoin(format.labels, " or "));
}

absl::StatusOr<Row> RowOf(const std::vector<std::string>& cells, const Format& format,
                          const std::string& path, size_t line) {
  if (cells.size() != format.columns.size()) {
    return BadLine(path, line,
                   absl::StrCat(cells.size(), " columns, want ", format.columns.size(), ": ",
                                absl::StrJoin(format.columns, ", ")));
  }
  ASSIGN_OR_RETURN(const int32_t label, LabelOf(cells[format.label], format, path, line));
  return Row{cells[format.first], format.is_pair() ? cells[format.second] : "", label};
}

absl::StatusOr<std::vector<Row>> RowsOf(const std::string& content, const Format& format,
                                        const std::string& path) {
  std::vector<std::string> lines =
      absl::StrSplit(content.substr(ByteOrderMarkBytes(content)), '\n');
  if (lines.back().empty()) lines.pop_back();
  std::vector<Row> rows;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].empty() && lines[i].back() == '\r') lines[i].pop_back();
    const std::vector<std::string> cells = absl::StrSplit(lines[i], '\t');
    if (i == 0 && format.has_header) {
      if (cells == format.columns) continue;
      return BadLine(path, 1,
                     absl::StrCat("\"", absl::StrJoin(cells, ", "), "\", want the header ",
                                  absl::StrJoin(format.columns, ", ")));
    }
    ASSIGN_OR_RETURN(Row row, RowOf(cells, format, path, i + 1));
    rows.push_back(std::move(row));
  }
  if (!rows.empty()) return rows;
  return absl::InvalidArgumentError(absl::StrCat(path, ": no samples, want at least one"));
}

// Returns the folder with the files of a task: options.dir, or that of the task's name in it.
std::string FolderOf(const Format& format, const DataOptions& options) {
  const std::string dir = options.dir.empty() ? "." : options.dir;
  const std::string inner = absl::StrCat(dir, "/", format.folder);
  std::error_code ignored;  // reading reports a missing folder
  return std::filesystem::exists(absl::StrCat(inner, "/", format.files[0].name), ignored) ? inner
                                                                                          : dir;
}

absl::StatusOr<std::vector<Row>> ReadRows(const Format& format, const OfficialFile& file,
                                          const DataOptions& options) {
  const std::string path = absl::StrCat(FolderOf(format, options), "/", file.name);
  const absl::StatusOr<std::string> content = ReadFile(path);
  if (absl::IsNotFound(content.status())) {
    return absl::NotFoundError(absl::StrCat("cannot read ", path, ": want GLUE's files of ",
                                            format.folder, " there, or in a folder of that name"));
  }
  RETURN_IF_ERROR(content.status());
  if (options.verify) {
    RETURN_IF_ERROR(CheckOfficial(file, path, *content));
  } else {
    RETURN_IF_ERROR(CheckNoStandIn(path, *content));
  }
  return RowsOf(*content, format, path);
}

struct Rows {
  std::vector<Row> train, test;
};

absl::StatusOr<Rows> ReadTask(const Format& format, const DataOptions& options) {
  Rows rows;
  ASSIGN_OR_RETURN(rows.train, ReadRows(format, format.files[0], options));
  ASSIGN_OR_RETURN(rows.test, ReadRows(format, format.files[1], options));
  return rows;
}

absl::StatusOr<std::unique_ptr<WordPiece>> TokenizerOf(const DataOptions& options) {
  ASSIGN_OR_RETURN(const std::string folder, VocabularyFolder(options.text));
  return WordPiece::Load(folder, options.text.lowercase);
}

CorpusSize SizeOf(const Rows& rows, const WordPiece& tokenizer) {
  CorpusSize size;
  size.vocabulary = tokenizer.vocabulary();
  size.train_samples = static_cast<int64_t>(rows.train.size());
  size.test_samples = static_cast<int64_t>(rows.test.size());
  return size;
}

int64_t ClassesIn(const Format& format) {
  return format.has_scores() ? 1 : static_cast<int64_t>(format.labels.size());
}

// Makes the data set of some rows.
absl::StatusOr<std::unique_ptr<Dataset>> Tokenized(const std::vector<Row>& rows,
                                                   const SampleRange& range, const Format& format,
                                                   const WordPiece& tokenizer, int64_t context) {
  std::vector<int32_t> ids, labels;
  ids.reserve(static_cast<size_t>((range.last - range.first) * context));
  for (int64_t i = range.first; i < range.last; ++i) {
    const Row& row = rows[static_cast<size_t>(i)];
    Sentences sentences;
    ASSIGN_OR_RETURN(sentences.first, tokenizer.Encode(row.first));
    ASSIGN_OR_RETURN(sentences.second, tokenizer.Encode(row.second));
    const std::vector<int32_t> framed =
        Framed(sentences, format.is_pair(), context, tokenizer.special());
    ids.insert(ids.end(), framed.begin(), framed.end());
    labels.push_back(row.label);
  }
  return std::make_unique<SentenceDataset>(std::move(ids), std::move(labels), context,
                                           ClassesIn(format));
}

}  // namespace

GlueMeasures MeasuresOf(GlueTask task) { return FormatOf(task).measures; }

int64_t ClassesOf(GlueTask task) { return ClassesIn(FormatOf(task)); }

double ScoreUnitOf(GlueTask task) { return FormatOf(task).has_scores() ? kScoreUnit : 0; }

absl::StatusOr<CorpusSize> MeasureGlue(const DataOptions& options) {
  ASSIGN_OR_RETURN(const Rows rows, ReadTask(FormatOf(options.text.task), options));
  ASSIGN_OR_RETURN(const std::unique_ptr<WordPiece> tokenizer, TokenizerOf(options));
  return SizeOf(rows, *tokenizer);
}

absl::StatusOr<DataSplits> LoadGlue(const DataOptions& options) {
  const Format format = FormatOf(options.text.task);
  const int64_t context = options.text.context;
  const int64_t least = SpecialIn(format.is_pair()) + (format.is_pair() ? 2 : 1);
  if (context < least) {
    return absl::InvalidArgumentError(
        absl::StrCat("context is ", context, ", want at least ", least, " for ", format.folder));
  }
  ASSIGN_OR_RETURN(const Rows rows, ReadTask(format, options));
  ASSIGN_OR_RETURN(const std::unique_ptr<WordPiece> tokenizer, TokenizerOf(options));
  RETURN_IF_ERROR(CheckPlannedSamples(absl::StrCat("glue's ", format.folder),
                                      SizeOf(rows, *tokenizer), options.text.size));
  const std::string what = absl::StrCat("the training sentences of ", format.folder);
  const auto size = static_cast<int64_t>(rows.train.size());
  ASSIGN_OR_RETURN(const ImageParts parts, PartsOf(what, size, options));
  DataSplits splits;
  ASSIGN_OR_RETURN(splits.train, Tokenized(rows.train, parts.train, format, *tokenizer, context));
  if (options.held_out > 0) {
    ASSIGN_OR_RETURN(splits.test,
                     Tokenized(rows.train, parts.held_out, format, *tokenizer, context));
    return splits;
  }
  const auto tests = static_cast<int64_t>(rows.test.size());
  RETURN_IF_ERROR(
      CheckLimit(absl::StrCat("the test sentences of ", format.folder), tests, options.test_limit));
  ASSIGN_OR_RETURN(splits.test, Tokenized(rows.test, FirstOf(tests, options.test_limit), format,
                                          *tokenizer, context));
  return splits;
}

}  // namespace thinwire
