// Trains small experiments and writes what crosses their cuts to files.   usage: record FOLDER
#include <cstdio>
#include <cstdlib>

#include "base/annotated.h"
#include "base/status.h"
#include "tests/wire/configurations.h"
#include "tests/wire/recorded_training.h"

namespace thinwire {
namespace {

absl::Status Record(const RecordedRun& run, const std::string& folder) {
  ASSIGN_OR_RETURN(const auto training, RecordedTraining::New(run));
  RETURN_IF_ERROR(training->Run());
  return training->Write(folder);
}

absl::Status RecordAll(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<RecordedRun> runs, AllRecordedRuns());
  for (const RecordedRun& run : runs) {
    RETURN_IF_ERROR(Annotated(Record(run, folder), run.name));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: record FOLDER\n");
    return EXIT_FAILURE;
  }
  const absl::Status status = thinwire::RecordAll(argv[1]);
  if (status.ok()) return EXIT_SUCCESS;
  std::fprintf(stderr, "record: %s\n", status.ToString().c_str());
  return EXIT_FAILURE;
}
