#include "compress/codecs/host_view.h"

#include "base/status.h"
#include "compress/cpu/nonfinite.h"

namespace thinwire {

absl::StatusOr<TensorView> OnHost(const Tensor& x, std::vector<uint8_t>* memory) {
  TensorView view = x.view();
  if (x.device()->is_host()) return view;
  memory->resize(x.bytes());
  RETURN_IF_ERROR(ToStatus(x.device()->CopyToHost(memory->data(), x.data(), x.bytes())));
  view.data = memory->data();
  return view;
}

absl::Status NonFiniteIn(const Tensor& x, const char* name, const absl::Status& otherwise) {
  std::vector<uint8_t> memory;
  ASSIGN_OR_RETURN(const TensorView view, OnHost(x, &memory));
  if (FirstNonFinite(view, nullptr) == x.elements()) return otherwise;
  return ToStatus(NonFiniteError(name, view));
}

}  // namespace thinwire
