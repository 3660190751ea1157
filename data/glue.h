// Tasks of GLUE (Wang et al., 2019) whose samples have a class each: sentences, or pairs of them,
// in files of tab-separated columns, which are never quoted.
//
//   task   folder  columns                                          classes
//   cola   CoLA    source, label, mark, sentence; no header         0, 1 (acceptable)
//   mrpc   MRPC    Quality, #1 ID, #2 ID, #1 String, #2 String      0, 1 (paraphrase)
//   rte    RTE     index, sentence1, sentence2, label               entailment, not_entailment
//   sst2   SST-2   sentence, label                                  0, 1 (positive)
//
// train.tsv is for training and dev.tsv for test, as test.tsv has no labels.
#pragma once

#include "absl/status/statusor.h"
#include "data/dataset.h"

namespace thinwire {

// Measures by which a task is judged beside accuracy. Class 1 is the positive one.
struct GlueMeasures {
  bool f1 = false, matthews = false;
};
GlueMeasures MeasuresOf(GlueTask task);

// Returns the number of classes of a task.
int64_t ClassesOf(GlueTask task);

// Reads the files in options.dir, or in the folder of the task's name there, and counts samples and
// the tokens of the vocabulary. NotFound names the missing file. DataLoss, with options.verify,
// names one that is not official. InvalidArgument names the file and the line with other columns or
// another label, what it has and what is wanted.
absl::StatusOr<CorpusSize> MeasureGlue(const DataOptions& options);

// Makes the data sets. Errors of MeasureGlue; InvalidArgument for other sizes than
// options.text.size, a context without room for a token of each sentence, and limits or held-out
// samples beyond the data.
absl::StatusOr<DataSplits> LoadGlue(const DataOptions& options);

}  // namespace thinwire
