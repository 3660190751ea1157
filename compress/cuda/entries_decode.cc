#include <algorithm>
#include <array>

#include "compress/cpu/entries_header.h"
#include "compress/cpu/index_coding.h"
#include "compress/cuda/bitmap.h"
#include "compress/cuda/entries.h"
#include "compress/cuda/sparse_writer.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

Error CheckIndices(CudaDevice* device, const EntryIndices& indices) {
  Error of_read;
  const auto byte_at = [&](size_t at) {
    uint8_t byte = 0;
    if (of_read.ok()) of_read = indices.bytes.Read(device, at, &byte);
    return byte;
  };
  const Error checked = CheckIndexBytes(indices.plan, byte_at, indices.count, indices.size);
  return of_read.ok() ? checked : of_read;
}

// Submits a check that sets *fault if a scope has too many entries.
Error SubmitScopeGuard(CudaDevice* device, const CodecSpec& spec, const Scopes& scopes,
                       const RankedBits& bits, uint32_t* fault) {
  const int64_t most = MostEntriesOfScope(spec, scopes.elements);
  const int64_t of_last = MostEntriesOfScope(spec, scopes.of_last());
  if (scopes.count <= 1 || (most == scopes.elements && of_last == scopes.of_last())) {
    return Error{};
  }
  CudaScratch counts(device);
  RETURN_ERROR(counts.Reserve(4 * scopes.count));
  RETURN_ERROR(SubmitScopeCounts(device, bits, scopes, counts.as<uint32_t>()));
  uint32_t* const last = counts.as<uint32_t>() + scopes.count - 1;
  RETURN_ERROR(SubmitMostCheck(device, counts.as<uint32_t>(), scopes.count - 1, most, fault));
  return SubmitMostCheck(device, last, 1, of_last, fault);
}

}  // namespace

Error EntriesToDecode::SubmitCopy(const PayloadSource& payload, const CodecSpec& spec,
                                  const KernelContext& context, const TensorView& x) {
  spec_ = spec;
  context_ = context;
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  std::array<uint8_t, kEntriesHeaderBytes> front = {};
  RETURN_ERROR(payload.Read(device_, 0, std::min(payload.bytes, front.size()), front.data()));
  EntriesHeader header;
  RETURN_ERROR(ReadEntriesHeader(front.data(), payload.bytes, spec, scopes, &header));
  count_ = header.count;
  const size_t value_bytes = ValueBytes(spec, header.count);
  EntryIndices indices;
  indices.bytes = payload.behind(kEntriesHeaderBytes + value_bytes);
  indices.plan = {static_cast<IndexCoding>(header.coding), header.rice_bits, indices.bytes.bytes};
  indices.count = header.count;
  indices.size = context.support == nullptr ? scopes.total : context.support->count;
  RETURN_ERROR(CheckIndices(device_, indices));
  RETURN_ERROR(indices_.SubmitCopy(indices));
  return values_.Submit(payload.behind(kEntriesHeaderBytes), header.count, spec, header.exponent);
}

Error EntriesToDecode::Submit(const TensorView& x, uint32_t* fault) {
  const int64_t n = x.elements();
  RETURN_ERROR(support_.Submit(WordsOf(context_.support), n));
  RETURN_ERROR(indices_.Submit(n, support_.bits(), fault));
  const Scopes scopes = ScopesOf(x, spec_.scope, spec_.group);
  RETURN_ERROR(SubmitScopeGuard(device_, spec_, scopes, indices_.bits(), fault));
  return SubmitSparse(device_, indices_.bits(), values_.values(), count_, x, fault);
}

Error CudaEntriesDecode(CudaDevice* device, const PayloadSource& payload, const CodecSpec& spec,
                        const KernelContext& context, const TensorView& x) {
  RETURN_ERROR(CheckElements(spec, x.elements()));
  CudaScratch fault(device);
  RETURN_ERROR(fault.ReserveZeros(4));
  EntriesToDecode entries(device);
  Error error = entries.SubmitCopy(payload, spec, context, x);
  if (error.ok()) error = entries.Submit(x, fault.as<uint32_t>());
  // Waits, also after an error: until then the device reads the payload.
  uint32_t is_faulty = 0;
  RETURN_ERROR(device->CopyToHost(&is_faulty, fault.as<void>(), 4));
  return is_faulty == 0 ? error : PayloadSource::Refused();
}

}  // namespace thinwire
