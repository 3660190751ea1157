#include "stage_server/stage/join_testing.h"

#include <utility>

#include "base/status.h"
#include "wire/memory_link.h"

namespace thinwire {

namespace {

absl::Status JoinEnds(LocalStage* upstream, const CutEndSpec& up, LocalStage* downstream,
                      const CutEndSpec& down) {
  ASSIGN_OR_RETURN(const LinkOptions up_options, upstream->LinkOptionsFor(up));
  ASSIGN_OR_RETURN(const LinkOptions down_options, downstream->LinkOptionsFor(down));
  auto [up_link, down_link] = NewMemoryLinks(up_options, down_options);
  RETURN_IF_ERROR(upstream->Attach(up, std::move(up_link)));
  return downstream->Attach(down, std::move(down_link));
}

}  // namespace

absl::Status Join(LocalStage* upstream, LocalStage* downstream) {
  return JoinEnds(upstream, DownstreamEnd(upstream->spec(), "downstream"), downstream,
                  UpstreamEnd(downstream->spec(), "upstream"));
}

absl::Status JoinTied(LocalStage* first, LocalStage* last) {
  return JoinEnds(first, TiedEnd(first->spec(), DIRECTION_ACTIVATION, "the last stage"), last,
                  TiedEnd(last->spec(), DIRECTION_GRADIENT, "the first stage"));
}

}  // namespace thinwire
