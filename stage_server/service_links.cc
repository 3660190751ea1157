// The calls that measure the link between two stages.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "stage_server/service.h"
#include "transport/dial.h"
#include "transport/speed.h"
#include "transport/status.h"

namespace thinwire {
namespace {

constexpr absl::Duration kMeasured = absl::Seconds(1);  // in each direction
constexpr absl::Duration kPatience = absl::Seconds(30);

}  // namespace

absl::Status StageService::MayMeasure(const Lease& lease,
                                      const grpc::ServerContext& context) const {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(lease_.Check(lease, SteadyTime::Now()));
  if (run_ != nullptr) {
    return absl::FailedPreconditionError("the stage is configured: its links are not measured");
  }
  const bool is_over = stopping_ || context.IsCancelled();
  return is_over ? absl::CancelledError("the measurement was ended") : absl::OkStatus();
}

grpc::Status StageService::AnswerLink(grpc::ServerContext* context,
                                      const AnswerLinkRequest* request,
                                      grpc::ServerWriter<AnswerLinkResponse>* writer) {
  const auto stopped = [&] { return MayMeasure(request->lease(), *context); };
  const auto answer = [&]() -> absl::Status {
    RETURN_IF_ERROR(stopped());
    ASSIGN_OR_RETURN(
        const std::unique_ptr<Link> link,
        boundaries_->Listen(MeasuredLink(request->lease().generation(), request->link_secret(),
                                         "the stage before", DIRECTION_ACTIVATION)));
    if (!writer->Write({})) return absl::CancelledError("the coordinator ended the call");
    return thinwire::AnswerLink(link.get(), SteadyTime::Now() + kPatience, stopped);
  };
  const absl::Status status = answer();
  return status.ok() ? grpc::Status::OK : Refuse("AnswerLink", request->lease(), status);
}

grpc::Status StageService::MeasureLink(grpc::ServerContext* context,
                                       const MeasureLinkRequest* request,
                                       MeasureLinkResponse* response) {
  const auto stopped = [&] { return MayMeasure(request->lease(), *context); };
  const auto measure = [&]() -> absl::Status {
    RETURN_IF_ERROR(stopped());
    const SteadyTime deadline = SteadyTime::Now() + kPatience;
    const LinkOptions options =
        MeasuredLink(request->lease().generation(), request->link_secret(),
                     absl::StrCat("the stage at ", request->downstream()), DIRECTION_GRADIENT);
    ASSIGN_OR_RETURN(
        const std::unique_ptr<Link> link,
        DialLink(request->downstream(), options, boundaries_->security(), deadline, stopped));
    ASSIGN_OR_RETURN(const LinkSpeed speed,
                     thinwire::MeasureLink(link.get(), kMeasured, deadline, stopped));
    response->set_round_trip_seconds(speed.round_trip_seconds);
    response->set_down_bytes_per_second(speed.down_bytes_per_second);
    response->set_up_bytes_per_second(speed.up_bytes_per_second);
    link->Close(absl::CancelledError("it is measured"));
    return absl::OkStatus();
  };
  const absl::Status status = measure();
  return status.ok() ? grpc::Status::OK : Refuse("MeasureLink", request->lease(), status);
}

}  // namespace thinwire
