#include "compress/bytes.h"
#include "compress/cpu/entries_header.h"
#include "compress/cuda/bitmap.h"
#include "compress/cuda/codecs.h"
#include "compress/cuda/entry_list.h"
#include "compress/cuda/kept_values.h"
#include "compress/cuda/mark.h"
#include "compress/cuda/random_draws.h"
#include "compress/cuda/sparse_writer.h"
#include "compress/half.h"
#include "compress/layout.h"
#include "compress/refusals.h"
#include "tensor/cuda/error.h"

namespace thinwire {
namespace {

// Findings in device memory until the host reads them.
struct Found {
  uint64_t count;         // number of entries
  uint32_t largest;       // magnitude bits of all elements that have support
  uint32_t largest_kept;  // magnitude bits of the entries sent
};

// Memory and launches of one payload.
class Encoding {
 public:
  explicit Encoding(CudaDevice* device) : device_(device) {}

  Error Submit(const TensorView& x, const CodecSpec& spec, const KernelContext& context) {
    const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
    const int64_t most = NumKept(spec, scopes.elements) * scopes.count;
    const bool has_counts = spec.unbiased && context.support != nullptr;
    if (has_counts) RETURN_ERROR(indices_.Reserve(4 * (most + 1)));
    RETURN_ERROR(values_.Reserve(spec, most));
    RETURN_ERROR(found_.ReserveZeros(sizeof(Found)));
    RETURN_ERROR(chosen_.Submit(scopes, spec, context.random_key, context.support));
    EntryList list;
    list.values.data = values_.data();
    list.indices = has_counts ? indices_.as<uint32_t>() : nullptr;
    if (context.support == nullptr) {
      list.largest_of_all = &found()->largest;
    } else {
      RETURN_ERROR(SubmitLargestMagnitude(device_, KeysOf(x, context.support), &found()->largest));
    }
    list.largest = spec.unbiased ? nullptr : &found()->largest_kept;
    RETURN_ERROR(SubmitEntryList(device_, x, chosen_.bits(), list));
    if (spec.unbiased) RETURN_ERROR(SubmitFactors(scopes, spec, context, most));
    RETURN_ERROR(values_.Submit(chosen_.count(), &found()->largest_kept));
    return device_->SubmitCopy(&found()->count, chosen_.count(), sizeof(uint64_t),
                               cudaMemcpyDeviceToDevice);
  }

  Found* found() const { return found_.as<Found>(); }
  KeptValues* values() { return &values_; }

 private:
  Error SubmitFactors(const Scopes& scopes, const CodecSpec& spec, const KernelContext& context,
                      int64_t most) {
    DrawFactors factors = {scopes, NumKept(spec, scopes.elements), nullptr};
    if (context.support != nullptr) {
      RETURN_ERROR(support_counts_.Reserve(4 * (scopes.count + 1)));
      RETURN_ERROR(support_.Submit(WordsOf(context.support), scopes.total));
      RETURN_ERROR(
          SubmitScopeCounts(device_, support_.bits(), scopes, support_counts_.as<uint32_t>()));
      factors.counts = support_counts_.as<uint32_t>();
    }
    return SubmitDrawFactors(device_, factors, indices_.as<uint32_t>(), chosen_.count(), most,
                             values_.data(), &found()->largest_kept);
  }

  CudaDevice* const device_;
  ChosenByDraw chosen_{device_};
  RankedBitmap support_{device_};
  CudaScratch support_counts_{device_}, indices_{device_}, found_{device_};
  KeptValues values_{device_};
};

}  // namespace

Error CudaRandomKEncode(CudaDevice* device, const CodecSpec& spec, const TensorView& x,
                        const KernelContext& context, const PayloadTarget& payload) {
  RETURN_ERROR(CheckElements(spec, x.elements()));
  Encoding encoding(device);
  RETURN_ERROR(encoding.Submit(x, spec, context));
  Found found;
  RETURN_ERROR(device->CopyToHost(&found, encoding.found(), sizeof(found)));
  if (found.largest >= kInfinityBits) {
    return CudaNonFiniteError(device, Name(spec.kind), x, context.support);
  }
  const int64_t count = static_cast<int64_t>(found.count);
  *payload.bytes = RandomKHeaderBytes(spec) + ValueBytes(spec, count);
  RETURN_ERROR(CheckCapacity(Name(spec.kind), payload.capacity, *payload.bytes));
  if (found.largest_kept >= kInfinityBits) return OverflowOfProduct();
  RETURN_ERROR(payload.Put(device, 0, context.random_key));
  if (spec.values == Values::kF16) {
    RETURN_ERROR(payload.Put(device, kSeedBytes, ValueExponentFor(spec, found.largest_kept)));
  }
  // The seed's own numbers decide who is kept, so rounding needs others.
  const Error copied = encoding.values()->SubmitCopy(count, ~context.random_key,
                                                     payload.behind(RandomKHeaderBytes(spec)));
  const Error finished = device->Finish();
  return copied.ok() ? finished : copied;
}

Error CudaRandomKDecode(CudaDevice* device, const PayloadSource& payload, const CodecSpec& spec,
                        const KernelContext& context, const TensorView& x) {
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  RETURN_ERROR(CheckElements(spec, scopes.total));
  const size_t header_bytes = RandomKHeaderBytes(spec);
  RETURN_ERROR(CheckHeaderBytes(spec, payload.bytes, header_bytes));
  ChosenByDraw chosen(device);
  uint64_t seed = 0;
  RETURN_ERROR(payload.Read(device, 0, &seed));
  RETURN_ERROR(chosen.Submit(scopes, spec, seed, context.support));
  uint64_t found = 0;
  RETURN_ERROR(device->CopyToHost(&found, chosen.count(), sizeof(found)));
  const int64_t count = static_cast<int64_t>(found);
  RETURN_ERROR(
      CheckPayloadBytes(Name(spec.kind), payload.bytes, header_bytes + ValueBytes(spec, count)));
  int16_t exponent = 0;
  if (spec.values == Values::kF16) RETURN_ERROR(payload.Read(device, kSeedBytes, &exponent));
  CudaScratch fault(device);
  RETURN_ERROR(fault.ReserveZeros(4));
  PayloadValues values(device);
  RETURN_ERROR(values.Submit(payload.behind(header_bytes), count, spec, exponent));
  const Error submitted =
      SubmitSparse(device, chosen.bits(), values.values(), count, x, fault.as<uint32_t>());
  // Waits, also after an error: until then the device reads the payload.
  uint32_t is_nonfinite = 0;
  RETURN_ERROR(device->CopyToHost(&is_nonfinite, fault.as<void>(), 4));
  return is_nonfinite == 0 ? submitted : PayloadSource::Refused();
}

}  // namespace thinwire
