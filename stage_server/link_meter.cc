#include "stage_server/link_meter.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "transport/dial.h"
#include "transport/speed.h"

namespace thinwire {
namespace {

constexpr absl::Duration kMeasured = absl::Seconds(1);  // in each direction
constexpr absl::Duration kPatience = absl::Seconds(30);

}  // namespace

absl::Status LinkMeter::Answer(const AnswerLinkRequest& request,
                               const std::function<bool()>& listens, const Stopped& stopped) const {
  RETURN_IF_ERROR(stopped());
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Link> link,
      boundaries_.Listen(MeasuredLink(request.lease().generation(), request.link_secret(),
                                      "the stage before", DIRECTION_ACTIVATION)));
  if (!listens()) return absl::CancelledError("the coordinator ended the call");
  return AnswerLink(link.get(), SteadyTime::Now() + kPatience, stopped);
}

absl::Status LinkMeter::Measure(const MeasureLinkRequest& request, const Stopped& stopped,
                                MeasureLinkResponse* response) const {
  RETURN_IF_ERROR(stopped());
  const SteadyTime deadline = SteadyTime::Now() + kPatience;
  const LinkOptions options =
      MeasuredLink(request.lease().generation(), request.link_secret(),
                   absl::StrCat("the stage at ", request.downstream()), DIRECTION_GRADIENT);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Link> link,
      DialLink(request.downstream(), options, boundaries_.security(), deadline, stopped));
  ASSIGN_OR_RETURN(const LinkSpeed speed, MeasureLink(link.get(), kMeasured, deadline, stopped));
  response->set_round_trip_seconds(speed.round_trip_seconds);
  response->set_down_bytes_per_second(speed.down_bytes_per_second);
  response->set_up_bytes_per_second(speed.up_bytes_per_second);
  link->Close(absl::CancelledError("it is measured"));
  return absl::OkStatus();
}

}  // namespace thinwire
