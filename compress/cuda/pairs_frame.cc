#include "compress/cuda/pairs_frame.h"

#include <array>
#include <numeric>
#include <vector>

#include "compress/bytes.h"
#include "compress/cuda/large_bytes.h"
#include "compress/cuda/rans.h"
#include "compress/entropy/frequencies.h"

namespace thinwire {
namespace {

RansStrings PartsOf(const PairsHead& head) {
  const auto rows = static_cast<int64_t>(head.num_rows());
  return {rows * static_cast<int64_t>(kStates), rows, static_cast<int64_t>(head.num_parts)};
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
  const RansStrings parts = PartsOf(head_);
  RETURN_ERROR(pairs_.Reserve(static_cast<size_t>(parts.bytes)));
  RETURN_ERROR(SubmitToPairs(device_, codes_, static_cast<int64_t>(head_.count),
                             pairs_.as<uint8_t>(), parts.bytes, large));
  return SubmitByteCounts(device_, pairs_.as<const uint8_t>(), /*sums=*/nullptr, parts.bytes,
                          pairs);
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
  made->AddCoded(writer_, /*has_lengths=*/true);
  return Error{};
}

Error CudaPairsWriter::ListLarge() {
  if (head_.num_large == 0) return Error{};
  const auto count = static_cast<int64_t>(head_.count);
  RETURN_ERROR(offsets_.Reserve(LargeOffsetsBytes(count)));
  RETURN_ERROR(large_.Reserve(head_.num_large));
  RETURN_ERROR(SubmitLargeOffsets(device_, codes_, count, kLargeCode, offsets_.as<uint64_t>()));
  return SubmitLargeList(device_, codes_, count, kLargeCode, offsets_.as<const uint64_t>(),
                         large_.as<uint8_t>(), /*places=*/nullptr);
}

// Appends all that precedes the parts and their lengths.
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
}

Error CudaReadPairsFrame(CudaDevice* device, const PairsFrameView& view, uint8_t* bytes) {
  const PairsHead& head = view.head;
  if (head.count == 0) return RansReader::Refused();
  const RansStrings parts = PartsOf(head);
  const auto count = static_cast<int64_t>(head.count);
  RansReader reader(device);
  CudaScratch pairs(device), large(device), large_offsets(device), fault(device);
  RETURN_ERROR(pairs.Reserve(static_cast<size_t>(parts.bytes)));
  RETURN_ERROR(large.Reserve(head.num_large + 1));
  RETURN_ERROR(large_offsets.Reserve(PairOffsetsBytes(count)));
  RETURN_ERROR(fault.ReserveZeros(sizeof(uint32_t)));
  RETURN_ERROR(reader.Submit(view.parts, {{}, {}, &view.table, 1}, parts, pairs.as<uint8_t>(),
                             fault.as<uint32_t>()));
  RETURN_ERROR(device->SubmitCopyFromHost(large.as<void>(), view.large.data(), view.large.size()));
  RETURN_ERROR(device->SubmitCopyFromHost(bytes, view.uncoded.data(), head.begin));
  RETURN_ERROR(SubmitFromPairs(device, pairs.as<const uint8_t>(), count, large.as<const uint8_t>(),
                               static_cast<int64_t>(head.num_large), large_offsets.as<uint64_t>(),
                               bytes + head.begin, fault.as<uint32_t>()));
  RETURN_ERROR(device->SubmitCopyFromHost(bytes + head.begin + head.count,
                                          view.uncoded.data() + head.begin,
                                          view.uncoded.size() - head.begin));
  uint32_t has_fault = 0;
  RETURN_ERROR(device->CopyToHost(&has_fault, fault.as<const void>(), sizeof(has_fault)));
  return has_fault == 0 ? Error{} : RansReader::Refused();
}

}  // namespace thinwire
