#include "stage_server/peer_state_service.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/secret.h"
#include "base/status.h"

namespace thinwire {

PeerStateService::PeerStateService(Guard guard, Run run, Journal* journal)
    : GuardedService(StagePeer::service_full_name(), std::move(guard)), run_(std::move(run)) {
  using Writer = grpc::ServerWriter<StateChunk>;
  Add<const ReadStateRequest, Writer>(
      "ReadState",
      [this, journal](auto* context, const ReadStateRequest* request,
                      Writer* writer) -> absl::Status {
        const absl::StatusOr<std::shared_ptr<StageRun>> asked = Asked(*request);
        on_call_(context->peer(), asked.ok());
        RETURN_IF_ERROR(asked.status());
        StageRun& run = **asked;
        const absl::Status status =
            run.ReadState(request->step(), [&](const auto& part, bool is_first, auto piece) {
              StateChunk chunk;
              if (is_first) *chunk.mutable_part() = part;
              chunk.set_data(piece.data(), piece.size());
              const bool is_sent = run.transfers().Make([&] { return writer->Write(chunk); },
                                                        [&] { context->TryCancel(); });
              return is_sent ? absl::OkStatus()
                             : absl::CancelledError("the call or the run has ended");
            });
        if (!status.ok() && !absl::IsCancelled(status)) {
          journal->Failed(run.subject(), "ReadState", status);
        }
        return status;
      });
}

absl::StatusOr<std::shared_ptr<StageRun>> PeerStateService::Asked(
    const ReadStateRequest& request) const {
  std::shared_ptr<StageRun> run = run_();
  if (run == nullptr || !SameSecret(run->spec().link_secret, request.link_secret())) {
    return absl::PermissionDeniedError("the call does not show the secret of a run of this server");
  }
  const StageSpec& spec = run->spec();
  if (request.generation() == spec.generation &&
      request.stage() == static_cast<uint32_t>(spec.stage)) {
    return run;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "asked for the state of stage ", request.stage(), ", generation ", request.generation(),
      "; this server has stage ", spec.stage, ", generation ", spec.generation));
}

}  // namespace thinwire
