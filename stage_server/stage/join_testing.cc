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
  const StageSpec &before = upstream->spec(), &behind = downstream->spec();
  for (const NeighbourEnd& neighbour : NeighbourEnds(before)) {
    CutEndSpec up = neighbour.end;
    const bool dials = up.sends == DIRECTION_ACTIVATION && up.cut != before.tied_cut();
    if (!dials || neighbour.stage != behind.stage) continue;
    up.peer = "downstream";
    RETURN_IF_ERROR(
        JoinEnds(upstream, up, downstream, {up.cut, DIRECTION_GRADIENT, /*peer=*/"upstream"}));
  }
  return absl::OkStatus();
}

absl::Status JoinPeers(LocalStage* lower, LocalStage* higher) {
  if (lower->spec().stage != higher->spec().stage) return absl::OkStatus();
  const int of_lower = lower->spec().carrier, of_higher = higher->spec().carrier;
  if (!lower->spec().grid.AreJoined(of_lower, of_higher)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const LinkOptions dials, lower->PeerLinkOptionsFor(of_higher));
  ASSIGN_OR_RETURN(const LinkOptions listens, higher->PeerLinkOptionsFor(of_lower));
  auto [lower_link, higher_link] = NewMemoryLinks(dials, listens);
  RETURN_IF_ERROR(lower->AttachPeer(of_higher, std::move(lower_link)));
  return higher->AttachPeer(of_lower, std::move(higher_link));
}

absl::Status JoinTied(LocalStage* first, LocalStage* last) {
  const int cut = first->spec().tied_cut();
  return JoinEnds(first, {cut, DIRECTION_ACTIVATION, "the last stage", Worker::kInline}, last,
                  {cut, DIRECTION_GRADIENT, "the first stage", Worker::kInline});
}

}  // namespace thinwire
