// The calls of StageService that receive a file from their client.
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "stage_server/service.h"
#include "transport/status.h"

namespace thinwire {
namespace {

// Uploads under way at most. A client's messages are held in memory as they come, whoever sends
// them.
constexpr int kMostUploads = 4;

}  // namespace

bool StageService::BeginUpload(grpc::ServerContext* context) {
  absl::MutexLock lock(&mutex_);
  if (uploads_ >= kMostUploads || stopping_) return false;
  ++uploads_;
  openings_[context] = SteadyTime::Now() + opening_patience_;
  return true;
}

void StageService::EndOpening(grpc::ServerContext* context) {
  absl::MutexLock lock(&mutex_);
  openings_.erase(context);
}

void StageService::EndUpload(grpc::ServerContext* context) {
  absl::MutexLock lock(&mutex_);
  openings_.erase(context);
  --uploads_;
}

void StageService::CancelLateOpenings() {
  absl::MutexLock lock(&mutex_);
  for (const auto& [context, deadline] : openings_) {
    if (stopping_ || SteadyTime::Now() > deadline) context->TryCancel();
  }
}

template <typename Request>
grpc::Status StageService::Upload(const char* call, grpc::ServerContext* context,
                                  grpc::ServerReader<Request>* reader, const Take<Request>& take) {
  if (!BeginUpload(context)) {
    return Refuse(call, {},
                  absl::ResourceExhaustedError(absl::StrCat(
                      kMostUploads, " calls that send files are under way, want fewer")));
  }
  const auto end = absl::MakeCleanup([&] { EndUpload(context); });
  Request first;
  if (!reader->Read(&first)) {
    return Refuse(call, {}, absl::InvalidArgumentError("no lease and no file came"));
  }
  EndOpening(context);
  const absl::StatusOr<std::shared_ptr<StageRun>> run = RunOf(first.lease());
  if (!run.ok()) return Refuse(call, first.lease(), run.status());
  Request request;
  bool is_first = true;  // it has been read already
  const auto next = [&](std::string_view* piece) {
    if (std::exchange(is_first, false)) {
      *piece = first.data();
      return true;
    }
    if (!WithClient(run->get(), context, [&] { return reader->Read(&request); })) return false;
    *piece = request.data();
    return true;
  };
  const absl::Status status = take(**run, first, next);
  // The end of a lease ends the file early, so that is the error to report.
  if (const absl::Status lost = RunOf(first.lease()).status(); !lost.ok()) {
    return Refuse(call, first.lease(), lost);
  }
  return End(call, **run, status);
}

grpc::Status StageService::ImportParameters(grpc::ServerContext* context,
                                            grpc::ServerReader<ImportParametersRequest>* reader,
                                            ImportParametersResponse*) {
  return Upload<ImportParametersRequest>(
      "ImportParameters", context, reader,
      [](StageRun& run, const ImportParametersRequest& first, const Next& next) {
        return run.ImportParameters({first.kept().begin(), first.kept().end()}, next);
      });
}

grpc::Status StageService::Restore(grpc::ServerContext* context,
                                   grpc::ServerReader<RestoreRequest>* reader, RestoreResponse*) {
  return Upload<RestoreRequest>("Restore", context, reader,
                                [](StageRun& run, const RestoreRequest& first, const Next& next) {
                                  return run.Restore(first.part(), first.step(), next);
                                });
}

}  // namespace thinwire
