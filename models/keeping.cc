#include "models/keeping.h"

namespace thinwire {
namespace {

constexpr Named<Keeping> kKeepingNames[] = {{Keeping::kKeep, "keep"},
                                            {Keeping::kRecompute, "recompute"},
                                            {Keeping::kStash, "stash"},
                                            {Keeping::kSwap, "swap"}};

}  // namespace

NameTable<Keeping> TableOf(Keeping) { return {"keep", kKeepingNames}; }

BlockKeeping Only(Keeping keeping) {
  BlockKeeping only;
  only.recompute = keeping == Keeping::kRecompute;
  only.stash = keeping == Keeping::kStash;
  only.swap = keeping == Keeping::kSwap;
  return only;
}

}  // namespace thinwire
