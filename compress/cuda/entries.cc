#include "compress/cuda/entries.h"

#include "compress/bytes.h"
#include "compress/cpu/entries_header.h"
#include "compress/cuda/bitmap.h"
#include "compress/cuda/codecs.h"
#include "compress/cuda/entry_list.h"
#include "compress/layout.h"
#include "compress/refusals.h"

namespace thinwire {

Error EntriesOnDevice::Reserve(const TensorView& x, const CodecSpec& spec,
                               const KernelContext& context, int64_t most) {
  x_ = x;
  spec_ = spec;
  context_ = context;
  const int64_t n = x.elements();
  RETURN_ERROR(kept_.Reserve(BitmapBytes(n) + 8));
  RETURN_ERROR(plan_.ReserveZeros(sizeof(EntriesPlan)));
  RETURN_ERROR(values_.Reserve(spec, most));
  const bool has_support = context.support != nullptr;
  return indices_.Reserve(most, has_support ? context.support->count : n, has_support);
}

Error EntriesOnDevice::Submit() {
  const int64_t n = x_.elements();
  RETURN_ERROR(ranked_.Submit(kept(), n));
  RETURN_ERROR(support_.Submit(WordsOf(context_.support), n));
  EntryList list;
  list.values.data = values_.data();
  list.largest = &plan()->largest;
  RETURN_ERROR(SubmitEntryList(device_, x_, ranked_.bits(), list));
  RETURN_ERROR(indices_.Submit(ranked_.bits(), n, support_.bits(), plan()));
  return values_.Submit(ranked_.count(), list.largest);
}

Error EntriesOnDevice::CopyTo(const PayloadTarget& payload) {
  EntriesPlan plan;
  RETURN_ERROR(device_->CopyToHost(&plan, this->plan(), sizeof(plan)));
  if (plan.nonfinite != 0) {
    return CudaNonFiniteError(device_, Name(spec_.kind), x_, context_.support);
  }
  *payload.bytes =
      kEntriesHeaderBytes + ValueBytes(spec_, plan.count) + plan.fields_bytes + plan.flags_bytes;
  RETURN_ERROR(CheckCapacity(Name(spec_.kind), payload.capacity, *payload.bytes));
  const Error copied = SubmitCopies(plan, payload);
  const Error finished = device_->Finish();
  return copied.ok() ? finished : copied;
}

Error EntriesOnDevice::SubmitCopies(const EntriesPlan& plan, const PayloadTarget& payload) {
  const EntriesHeader header = {static_cast<uint8_t>(plan.coding),
                                static_cast<uint8_t>(plan.rice_bits),
                                ValueExponentFor(spec_, plan.largest), plan.count};
  RETURN_ERROR(payload.Put(device_, 0, header));
  const size_t fields_at = kEntriesHeaderBytes + ValueBytes(spec_, plan.count);
  if (plan.fields_bytes > 0) {
    RETURN_ERROR(payload.SubmitCopy(device_, fields_at, indices_.fields(), plan.fields_bytes));
  }
  if (plan.flags_bytes > 0) {
    const void* const flags = indices_.flags(static_cast<IndexCoding>(plan.coding));
    RETURN_ERROR(
        payload.SubmitCopy(device_, fields_at + plan.fields_bytes, flags, plan.flags_bytes));
  }
  return values_.SubmitCopy(plan.count, context_.random_key, payload.behind(kEntriesHeaderBytes));
}

}  // namespace thinwire
