#include "compress/cpu/codecs.h"
#include "compress/cpu/entries.h"
#include "compress/cpu/entries_header.h"
#include "compress/cpu/kept.h"
#include "compress/cpu/nonfinite.h"
#include "compress/cpu/operations.h"
#include "compress/layout.h"

namespace thinwire {

// Zeros are never sent, and entries without support are zeros here, so all that is kept has
// support.
Error CpuTopKEncode(const CodecSpec& spec, const TensorView& x, const KernelContext& context,
                    const PayloadBuffer& payload, int threads) {
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  RETURN_ERROR(CheckElements(spec, scopes.total));
  Kept kept = KeepLargest(SupportedFloats(x, context.support, threads), scopes, spec, threads);
  if (!kept.finite) return NonFiniteError(Name(spec.kind), x, context.support);
  return WriteEntries(&kept, scopes.total, spec, context, payload, threads);
}

}  // namespace thinwire
