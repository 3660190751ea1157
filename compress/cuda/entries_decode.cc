#include <algorithm>
#include <array>
#include <memory>
#include <new>

#include "compress/cpu/entries.h"
#include "compress/cpu/entries_header.h"
#include "compress/cpu/index_coding.h"
#include "compress/cuda/bitmap.h"
#include "compress/cuda/entries.h"
#include "compress/cuda/scope_counts.h"
#include "compress/cuda/sparse_writer.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

// Memory that a refused payload needs on the host.
struct HostCopy {
  explicit HostCopy(size_t bytes) : memory(new (std::nothrow) uint8_t[bytes + 1]) {}
  std::unique_ptr<uint8_t[]> memory;
};

// Returns the error for a payload that the device found at fault. The CPU twin reads it again, so
// that the words are the same. Training ends with it, so time does not matter.
Error RefusalOf(CudaDevice* device, const PayloadView& payload, const CodecSpec& spec,
                const KernelContext& context, const TensorView& x) {
  const int64_t n = x.elements();
  const size_t word_bytes = 8 * static_cast<size_t>((n + 63) / 64);
  const HostCopy host_x(n * SizeOf(x.dtype)), words(context.support == nullptr ? 0 : word_bytes);
  if (host_x.memory == nullptr || words.memory == nullptr) {
    return MakeError(absl::StatusCode::kInvalidArgument, "%s: malformed payload of %zu bytes",
                     Name(spec.kind), payload.bytes);
  }
  TensorView view = x;
  view.data = host_x.memory.get();
  KernelContext on_host = context;
  SupportView support;
  if (context.support != nullptr) {
    support = *context.support;
    RETURN_ERROR(device->CopyToHost(words.memory.get(), support.words, word_bytes));
    support.words = reinterpret_cast<const uint64_t*>(words.memory.get());
    on_host.support = &support;
  }
  RETURN_ERROR(CpuEntriesDecode(payload, spec, on_host, view, /*threads=*/1));
  return MakeError(absl::StatusCode::kInternal, "%s: the GPU refuses what the CPU decodes",
                   Name(spec.kind));
}

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
Error SubmitScopeGuard(CudaDevice* device, cudaStream_t stream, const CodecSpec& spec,
                       const Scopes& scopes, const RankedBits& bits, uint32_t* fault) {
  const int64_t most = MostEntriesOfScope(spec, scopes.elements);
  const int64_t of_last = MostEntriesOfScope(spec, scopes.of_last());
  if (scopes.count <= 1 || (most == scopes.elements && of_last == scopes.of_last())) {
    return Error{};
  }
  CudaScratch counts(device);
  RETURN_ERROR(counts.Reserve(4 * scopes.count));
  RETURN_ERROR(SubmitScopeCounts(stream, bits, scopes, counts.as<uint32_t>()));
  uint32_t* const last = counts.as<uint32_t>() + scopes.count - 1;
  RETURN_ERROR(SubmitMostCheck(stream, counts.as<uint32_t>(), scopes.count - 1, most, fault));
  return SubmitMostCheck(stream, last, 1, of_last, fault);
}

}  // namespace

Error EntriesToDecode::SubmitCopy(cudaStream_t stream, const PayloadSource& payload,
                                  const CodecSpec& spec, const KernelContext& context,
                                  const TensorView& x) {
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
  RETURN_ERROR(indices_.SubmitCopy(stream, indices));
  return values_.Submit(stream, payload.behind(kEntriesHeaderBytes), header.count, spec,
                        header.exponent);
}

Error EntriesToDecode::Submit(cudaStream_t stream, const TensorView& x, uint32_t* fault) {
  const int64_t n = x.elements();
  RankedBits support;
  if (context_.support != nullptr) {
    RETURN_ERROR(support_offsets_.Reserve(TileOffsetsBytes(n)));
    support = {WordsOf(context_.support), support_offsets_.as<uint64_t>()};
    RETURN_ERROR(SubmitTileOffsets(stream, support.words, n, support_offsets_.as<uint64_t>()));
  }
  RETURN_ERROR(indices_.Submit(stream, n, support, fault));
  const Scopes scopes = ScopesOf(x, spec_.scope, spec_.group);
  RETURN_ERROR(SubmitScopeGuard(device_, stream, spec_, scopes, indices_.bits(), fault));
  return SubmitSparse(stream, indices_.bits(), values_.values(), count_, x, fault);
}

Error CudaEntriesDecode(CudaDevice* device, const PayloadSource& payload, const CodecSpec& spec,
                        const KernelContext& context, const TensorView& x) {
  RETURN_ERROR(CheckElements(spec, x.elements()));
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  CudaScratch fault(device);
  RETURN_ERROR(fault.ReserveZeros(4));
  EntriesToDecode entries(device);
  Error error = entries.SubmitCopy(stream, payload, spec, context, x);
  if (error.ok()) error = entries.Submit(stream, x, fault.as<uint32_t>());
  // Waits, also after an error: until then the device reads the payload.
  uint32_t is_faulty = 0;
  RETURN_ERROR(device->CopyToHost(&is_faulty, fault.as<void>(), 4));
  constexpr int kInvalidArgument = static_cast<int>(absl::StatusCode::kInvalidArgument);
  const bool is_refused = is_faulty != 0 || error.code == kInvalidArgument;
  if (!is_refused) return error;
  return payload.is_on_device ? PayloadSource::Refused()
                              : RefusalOf(device, payload, spec, context, x);
}

}  // namespace thinwire
