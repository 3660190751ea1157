// Tasks of GLUE (Wang et al., 2019) whose samples have a class or a score each: sentences, or pairs
// of them, in files of tab-separated columns, which are never quoted.
//
//   task   folder  columns                                          classes, or score
//   cola   CoLA    source, label, mark, sentence; no header         0, 1 (acceptable)
//   mrpc   MRPC    Quality, #1 ID, #2 ID, #1 String, #2 String      0, 1 (paraphrase)
//   rte    RTE     index, sentence1, sentence2, label               entailment, not_entailment
//   sst2   SST-2   sentence, label                                  0, 1 (positive)
//   stsb   STS-B   index, genre, filename, year, old_index,         0 to 5 (equivalent)
//                  source1, source2, sentence1, sentence2, score
//
// train.tsv is for training and dev.tsv for test, as test.tsv has no labels.
#pragma once

#include "absl/status/statusor.h"
#include "data/dataset.h"

namespace thinwire {

// Measures by which a task is judged beside accuracy, or in its place: correlations of scores.
// Class 1 is the positive one.
struct GlueMeasures {
  bool f1 = false, matthews = false, correlations = false;
};
GlueMeasures MeasuresOf(GlueTask task);

// Returns the number of classes of a task; 1 if samples have scores.
int64_t ClassesOf(GlueTask task);

// Returns DatasetInfo::score_unit of a task: 2^-28 or 0. Labels of scores are rounded to it, which
// is less than half an ulp of an fp32 number from 2^-4 on.
double ScoreUnitOf(GlueTask task);

// Reads the files in options.dir, or in the folder of the task's name there, and counts samples and
// the tokens of the vocabulary. NotFound names the missing file. DataLoss, with options.verify,
// names one that is not official. InvalidArgument names the file and the line with other columns,
// another label or a score out of range, what it has and what is wanted.
absl::StatusOr<CorpusSize> MeasureGlue(const DataOptions& options);

// Makes the data sets. Errors of MeasureGlue; InvalidArgument for other sizes than
// options.text.size, a context without room for a token of each sentence, and limits or held-out
// samples beyond the data.
absl::StatusOr<DataSplits> LoadGlue(const DataOptions& options);

}  // namespace thinwire
