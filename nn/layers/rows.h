// Views a tensor as a linear operation sees it: all leading axes are rows.
#pragma once

#include "tensor/tensor.h"

namespace thinwire {

inline TensorView RowsOf(const Tensor& tensor) {
  TensorView view = tensor.view();
  const int64_t features = view.dims[view.rank - 1];
  view.dims[0] = view.elements() / features;
  view.dims[1] = features;
  view.rank = 2;
  return view;
}

}  // namespace thinwire
