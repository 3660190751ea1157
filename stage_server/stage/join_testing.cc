#include "stage_server/stage/join_testing.h"

#include <utility>

#include "base/status.h"
#include "wire/memory_link.h"

namespace thinwire {

absl::Status Join(LocalStage* upstream, LocalStage* downstream) {
  const CutEndSpec up = DownstreamEnd(upstream->spec(), "downstream");
  const CutEndSpec down = UpstreamEnd(downstream->spec(), "upstream");
  ASSIGN_OR_RETURN(const LinkOptions up_options, upstream->LinkOptionsFor(up));
  ASSIGN_OR_RETURN(const LinkOptions down_options, downstream->LinkOptionsFor(down));
  auto [up_link, down_link] = NewMemoryLinks(up_options, down_options);
  RETURN_IF_ERROR(upstream->Attach(up, std::move(up_link)));
  return downstream->Attach(down, std::move(down_link));
}

}  // namespace thinwire
