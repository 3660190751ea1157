// Weights as they were before a run held them in few bits: those of the folder that it started
// from.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/files/model_folder.h"
#include "models/file_tensors.h"

namespace thinwire {

// Weights in an open folder, by the names that the run's files have for them.
class Originals {
 public:
  // Finds the tensors in a folder, where names may lack their first part. InvalidArgument names the
  // folder that cannot be read, or a tensor that is missing, of another shape or no number.
  static absl::StatusOr<Originals> Open(const std::string& dir,
                                        const std::vector<FileTensor>& tensors);

  bool has(const std::string& name) const { return entries_.count(name) > 0; }
  // Returns the values of a tensor that is there.
  absl::StatusOr<std::vector<float>> Values(const std::string& name) const;

 private:
  explicit Originals(ModelFolder folder) : folder_(std::move(folder)) {}

  ModelFolder folder_;
  std::map<std::string, ModelFolder::Entry> entries_;
};

}  // namespace thinwire
