#include "compress/cuda/pairs_frame.h"

#include <array>
#include <numeric>
#include <vector>

#include "compress/bytes.h"
#include "compress/cuda/byte_counts.h"
#include "compress/cuda/large_bytes.h"
#include "compress/cuda/pairs.h"
#include "compress/entropy/frequencies.h"

namespace thinwire {
namespace {

RansStrings PartsOf(const PairsHead& head) {
  const auto rows = static_cast<int64_t>(head.num_rows());
  return {rows * static_cast<int64_t>(kStates), rows, static_cast<int64_t>(head.num_parts)};
}

// Returns where the parts begin, and the last one ends; empty if a part has half a word.
std::vector<uint64_t> OffsetsOf(const PairsFrameView& view) {
  std::vector<uint64_t> offsets = {0};
  for (size_t part = 0; part < view.head.num_parts; ++part) {
    if (view.length(part) % kWordBytes != 0) return {};
    offsets.push_back(offsets.back() + view.length(part));
  }
  return offsets;
}

}  // namespace

CudaPairsWriter::CudaPairsWriter(CudaDevice* device, const uint8_t* bytes, size_t n,
                                 const CodesPlace& place)
    : device_(device), bytes_(bytes), n_(n), codes_(bytes + place.begin) {
  head_.begin = place.begin;
  head_.count = place.count;
  head_.num_parts = NumPartsOf(head_.num_rows());
}

Error CudaPairsWriter::SubmitCounts(uint32_t* pairs, uint32_t* large) {
  cudaStream_t stream;
  RETURN_ERROR(device_->Stream(&stream));
  const RansStrings parts = PartsOf(head_);
  RETURN_ERROR(pairs_.Reserve(static_cast<size_t>(parts.bytes)));
  RETURN_ERROR(SubmitToPairs(stream, codes_, static_cast<int64_t>(head_.count),
                             pairs_.as<uint8_t>(), parts.bytes, large));
  return SubmitByteCounts(stream, pairs_.as<const uint8_t>(), /*sums=*/nullptr, parts.bytes, pairs);
}

double CudaPairsWriter::Plan(const Frequencies& pairs, const Frequencies& large) {
  head_.num_large = std::accumulate(large.begin(), large.end(), size_t{0});
  plan_ = PlanPairs(n_, head_, pairs);
  return plan_.frame_bytes;
}

Error CudaPairsWriter::Write(FrameBytes* made) {
  RETURN_ERROR(writer_.Encode(pairs_.as<const uint8_t>(), PartsOf(head_), nullptr, &plan_.table));
  RETURN_ERROR(ListLarge());
  AddFront(made);
  made->AddOnDevice(writer_.packed(), writer_.offsets().back());
  return Error{};
}

Error CudaPairsWriter::ListLarge() {
  if (head_.num_large == 0) return Error{};
  cudaStream_t stream;
  RETURN_ERROR(device_->Stream(&stream));
  const auto count = static_cast<int64_t>(head_.count);
  RETURN_ERROR(offsets_.Reserve(LargeOffsetsBytes(count)));
  RETURN_ERROR(large_.Reserve(head_.num_large));
  RETURN_ERROR(SubmitLargeOffsets(stream, codes_, count, kLargeCode, offsets_.as<uint64_t>()));
  return SubmitLargeList(stream, codes_, count, kLargeCode, offsets_.as<const uint64_t>(),
                         large_.as<uint8_t>(), /*places=*/nullptr);
}

// Appends all that precedes the parts.
void CudaPairsWriter::AddFront(FrameBytes* made) const {
  std::array<uint8_t, kPairsHeadBytes> head_bytes;
  WritePairsHead(n_, head_, head_bytes.data());
  made->Add(head_bytes.data(), head_bytes.size());
  const size_t behind = head_.begin + head_.count;
  made->AddOnDevice(bytes_, head_.begin);
  made->AddOnDevice(bytes_ + behind, n_ - behind);
  made->AddOnDevice(large_.as<const uint8_t>(), head_.num_large);
  std::array<uint8_t, kMaxTableBytes> table_bytes;
  made->Add(table_bytes.data(), WriteTable(plan_.table, table_bytes.data()) - table_bytes.data());
  std::vector<uint8_t> lengths(head_.num_parts * kPartLengthBytes);
  const std::vector<uint64_t>& offsets = writer_.offsets();
  for (size_t part = 0; part < head_.num_parts; ++part) {
    StoreAs(static_cast<uint32_t>(offsets[part + 1] - offsets[part]),
            &lengths[part * kPartLengthBytes]);
  }
  made->Add(lengths.data(), lengths.size());
}

Error CudaReadPairsFrame(CudaDevice* device, const PairsFrameView& view, uint8_t* bytes) {
  const Error refused =
      MakeError(absl::StatusCode::kInvalidArgument, "entropy: a malformed frame of pairs");
  const PairsHead& head = view.head;
  const std::vector<uint64_t> offsets = OffsetsOf(view);
  if (head.count == 0 || offsets.empty()) return refused;
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  const RansStrings parts = PartsOf(head);
  const auto count = static_cast<int64_t>(head.count);
  RansReader reader(device);
  CudaScratch pairs(device), large(device), large_offsets(device), fault(device);
  RETURN_ERROR(pairs.Reserve(static_cast<size_t>(parts.bytes)));
  RETURN_ERROR(large.Reserve(head.num_large + 1));
  RETURN_ERROR(large_offsets.Reserve(PairOffsetsBytes(count)));
  RETURN_ERROR(fault.ReserveZeros(sizeof(uint32_t)));
  RETURN_ERROR(reader.Submit(view.parts.data(), offsets, {{}, {}, &view.table, 1}, parts,
                             pairs.as<uint8_t>(), fault.as<uint32_t>()));
  RETURN_ERROR(device->SubmitCopyFromHost(large.as<void>(), view.large.data(), view.large.size()));
  RETURN_ERROR(device->SubmitCopyFromHost(bytes, view.uncoded.data(), head.begin));
  RETURN_ERROR(SubmitFromPairs(stream, pairs.as<const uint8_t>(), count, large.as<const uint8_t>(),
                               static_cast<int64_t>(head.num_large), large_offsets.as<uint64_t>(),
                               bytes + head.begin, fault.as<uint32_t>()));
  RETURN_ERROR(device->SubmitCopyFromHost(bytes + head.begin + head.count,
                                          view.uncoded.data() + head.begin,
                                          view.uncoded.size() - head.begin));
  uint32_t has_fault = 0;
  RETURN_ERROR(device->CopyToHost(&has_fault, fault.as<const void>(), sizeof(has_fault)));
  return has_fault == 0 ? Error{} : refused;
}

}  // namespace thinwire
