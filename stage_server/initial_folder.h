// The folder of `init` on this machine, of which a stage reads its own tensors (init_at: stages).
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "base/model_folder.h"
#include "proto/stage.pb.h"

namespace thinwire {

class InitialFolder {
 public:
  // Opens the folder; its files stay open. Errors as ModelFolder::Open, with the field's name.
  static absl::StatusOr<InitialFolder> Open(const std::string& dir);

  // Lists the tensors and the digest of config.json. Errors name a file that cannot be read.
  absl::StatusOr<ListInitialResponse> List() const;

  // Passes a safetensors file of the tensors of `request`, by the names that it gives them, to
  // `sink`, piece by piece, and adds their digests to `response`. InvalidArgument names a tensor
  // that is not there, and two that differ though they are to be equal.
  absl::Status Write(const ReadInitialRequest& request, const FileSink& sink,
                     ReadInitialResponse* response) const;

 private:
  explicit InitialFolder(ModelFolder folder) : folder_(std::move(folder)) {}
  absl::StatusOr<const ModelFolder::Entry*> Find(const std::string& name) const;
  absl::Status CheckEqual(const ReadInitialRequest::Tensor& tensor) const;

  ModelFolder folder_;
};

}  // namespace thinwire
