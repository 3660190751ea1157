#include "compress/support.h"

#include "base/status.h"

namespace thinwire {

absl::StatusOr<SupportMap> SupportMap::Of(const Tensor& x, CodecKernels* kernels) {
  SupportMap map;
  map.elements_ = x.elements();
  ASSIGN_OR_RETURN(map.words_, Buffer::Allocate(x.device(), 8 * ((map.elements_ + 63) / 64)));
  RETURN_IF_ERROR(ToStatus(
      kernels->FindNonzeros(x.view(), static_cast<uint64_t*>(map.words_->data()), &map.count_)));
  return map;
}

SupportView SupportMap::view() const {
  return {static_cast<const uint64_t*>(words_->data()), elements_, count_};
}

}  // namespace thinwire
