#include "nn/within.h"

#include "base/status.h"
#include "nn/parameters.h"

namespace thinwire {

absl::Status KeepWithin(absl::Span<Parameter> parameters, NewtonSchulz* products, Device* device) {
  for (const Parameter& parameter : parameters) {
    if (parameter.spec.within.empty()) continue;
    const Matrix basis = MatrixOf(FindParameter(parameters, parameter.spec.within)->value);
    const Matrix values = MatrixOf(parameter.value);
    // True if the vectors to project are the columns of `values`; otherwise they are its rows.
    const bool has_columns = parameter.spec.hidden;
    ASSIGN_OR_RETURN(const Tensor code,
                     Tensor::Allocate(device, DType::kF32,
                                      has_columns ? Shape{basis.rows, values.columns}
                                                  : Shape{values.rows, basis.rows}));
    if (has_columns) {
      RETURN_IF_ERROR(products->Times(basis, values, MatrixOf(code)));
      RETURN_IF_ERROR(products->TransposedTimes(basis, MatrixOf(code), values));
    } else {
      RETURN_IF_ERROR(products->TimesTransposed(values, basis, MatrixOf(code)));
      RETURN_IF_ERROR(products->Times(MatrixOf(code), basis, values));
    }
  }
  return absl::OkStatus();
}

}  // namespace thinwire
