#include "compress/cuda/entropy_frame.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "compress/bytes.h"
#include "compress/cuda/byte_counts.h"
#include "compress/cuda/frame_bytes.h"
#include "compress/cuda/pairs.h"
#include "compress/cuda/pairs_frame.h"
#include "compress/cuda/rans.h"
#include "compress/cuda/stretches.h"
#include "compress/entropy/context_choice.h"
#include "compress/entropy/form_choice.h"
#include "compress/entropy/frequencies.h"
#include "compress/entropy/layout.h"
#include "compress/entropy/pairs_layout.h"
#include "tensor/cuda/error.h"

namespace thinwire {
namespace {

Error Refused() {
  return MakeError(absl::StatusCode::kInvalidArgument, "entropy: a malformed frame");
}

// Finds, before all codes are read, the neighbours and whether codes may pay in pairs.
Error Look(CudaDevice* device, const uint8_t* codes, const CodesPlace& place,
           ContextChoice* choice) {
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  const auto n = static_cast<int64_t>(place.count);
  CudaScratch large(device), where_memory(device), sample_memory(device);
  RETURN_ERROR(large.Reserve(sizeof(uint32_t)));
  RETURN_ERROR(SubmitLargeLooks(stream, codes, n, large.as<uint32_t>()));
  std::vector<uint32_t> where = SampledPieces(place.count, place.distances);
  const size_t num_pieces = where.size(), num_distances = place.distances.size();
  std::vector<uint8_t> sample;
  if (num_pieces > 0) {
    where.insert(where.end(), place.distances.begin(), place.distances.end());
    sample.resize((1 + num_distances) * num_pieces * kSampledRows * kStates);
    const size_t where_bytes = where.size() * sizeof(uint32_t);
    RETURN_ERROR(where_memory.Reserve(where_bytes));
    RETURN_ERROR(sample_memory.Reserve(sample.size()));
    RETURN_ERROR(device->SubmitCopyFromHost(where_memory.as<void>(), where.data(), where_bytes));
    RETURN_ERROR(SubmitSample(stream, codes, n, where_memory.as<const uint32_t>(),
                              static_cast<int64_t>(num_pieces), static_cast<int64_t>(num_distances),
                              sample_memory.as<uint8_t>()));
    RETURN_ERROR(
        device->SubmitCopyToHost(sample.data(), sample_memory.as<const void>(), sample.size()));
  }
  uint32_t large_looks = 0;
  RETURN_ERROR(device->CopyToHost(&large_looks, large.as<const void>(), sizeof(large_looks)));
  if (num_pieces > 0) *choice = ChooseNeighboursOf(place.count, place.distances, sample);
  choice->may_pay_in_pairs &= MayPayInPairs(place.count, large_looks);
  return Error{};
}

// Writer of a string as a frame that codes one byte at a time.
class BytesWriter {
 public:
  BytesWriter(CudaDevice* device, const uint8_t* bytes, size_t n)
      : device_(device),
        bytes_(bytes),
        coded_(bytes),
        head_(HeadWithoutNeighbours(n)),
        rows_(device),
        sums_(device),
        counts_(device),
        writer_(device) {}

  Error UseNeighbours(const CodesPlace& place, const ContextChoice& choice) {
    cudaStream_t stream;
    RETURN_ERROR(device_->Stream(&stream));
    head_.neighbours = choice.neighbours;
    head_.layout = choice.layout;
    head_.is_in_parts = place.count >= kLeastInParts;
    head_.begin = place.begin;
    head_.count = place.count;
    RETURN_ERROR(rows_.Reserve(head_.coded_bytes()));
    RETURN_ERROR(sums_.Reserve(head_.coded_bytes()));
    coded_ = rows_.as<const uint8_t>();
    RETURN_ERROR(SubmitToRows(stream, bytes_ + place.begin, static_cast<int64_t>(place.count),
                              head_.layout, rows_.as<uint8_t>()));
    return SubmitSumsOfNeighbours(stream, head_.neighbours, coded_,
                                  static_cast<int64_t>(NumRows(place.count)), head_.layout,
                                  sums_.as<uint8_t>());
  }

  // Sets *expected_bytes to the expected size of the frame. Waits.
  Error Plan(double* expected_bytes) {
    SumCounts counts = {};
    RETURN_ERROR(Count(&counts));
    *expected_bytes = ChooseTables(counts, &head_, &tables_);
    return Error{};
  }

  // Appends the frame to *made, whose pieces in device memory belong to this writer. Call Plan
  // before.
  Error Write(FrameBytes* made) {
    const auto coded_bytes = static_cast<int64_t>(head_.coded_bytes());
    const RansStrings strings = {coded_bytes, static_cast<int64_t>(NumRows(head_.coded_bytes())),
                                 static_cast<int64_t>(head_.layout.num_parts)};
    RETURN_ERROR(writer_.Encode(coded_, strings, sums(), tables_.of_sum.data()));
    std::array<uint8_t, kMostEntropyHeadBytes> head_bytes;
    std::vector<uint8_t> table_bytes(head_.num_contexts() * kMaxTableBytes);
    made->Add(head_bytes.data(), WriteEntropyHead(head_, head_bytes.data()) - head_bytes.data());
    const size_t behind = head_.begin + head_.count;
    made->AddOnDevice(bytes_, head_.begin);
    made->AddOnDevice(bytes_ + behind, head_.num_bytes - behind);
    made->Add(table_bytes.data(),
              WriteTables(head_, tables_, table_bytes.data()) - table_bytes.data());
    std::vector<uint8_t> lengths(head_.lengths_bytes());
    const std::vector<uint64_t>& offsets = writer_.offsets();
    for (size_t at = 0, part = 0; at < lengths.size(); at += sizeof(uint32_t), ++part) {
      StoreAs(static_cast<uint32_t>(offsets[part + 1] - offsets[part]), &lengths[at]);
    }
    made->Add(lengths.data(), lengths.size());
    made->AddOnDevice(writer_.packed(), offsets.back());
    return Error{};
  }

 private:
  // Returns the sums, one per byte of coded_; null without neighbours.
  const uint8_t* sums() const {
    return head_.has_neighbours() ? sums_.as<const uint8_t>() : nullptr;
  }

  Error Count(SumCounts* counts) {
    cudaStream_t stream;
    RETURN_ERROR(device_->Stream(&stream));
    const size_t count_bytes =
        head_.has_neighbours() ? sizeof(SumCounts) : sizeof(SumCounts::value_type);
    RETURN_ERROR(counts_.Reserve(count_bytes));
    CUDA_RETURN_IF_ERROR(cudaMemsetAsync(counts_.as<void>(), 0, count_bytes, stream));
    RETURN_ERROR(SubmitByteCounts(stream, coded_, sums(), static_cast<int64_t>(head_.coded_bytes()),
                                  counts_.as<uint32_t>()));
    return device_->CopyToHost(counts->data(), counts_.as<const void>(), count_bytes);
  }

  CudaDevice* const device_;
  const uint8_t* const bytes_;
  const uint8_t* coded_;
  EntropyHead head_;
  EntropyTables tables_;
  CudaScratch rows_, sums_, counts_;
  RansWriter writer_;
};

// A string in all forms that its frame may have.
class Forms {
 public:
  Forms(CudaDevice* device, const uint8_t* bytes, size_t n, const CodesPlace& place)
      : n_(n),
        plain_(device, bytes, n),
        with_neighbours_(device, bytes, n),
        pairs_(device, bytes, n, place) {}

  // Plans each form. Waits, as Best does.
  Error Plan(const CodesPlace& place, const ContextChoice& choice) {
    if (choice.neighbours.count > 0) {
      RETURN_ERROR(with_neighbours_.UseNeighbours(place, choice));
      RETURN_ERROR(with_neighbours_.Plan(&expected_.neighbours));
    }
    if (place.count > 0 && choice.may_pay_in_pairs) RETURN_ERROR(pairs_.Plan(&expected_.pairs));
    return plain_.Plan(&expected_.plain);
  }

  // Makes the frame of the form that costs least; empty if that is not shorter than the string.
  Error Best(FrameBytes* best) {
    double least = static_cast<double>(n_);
    for (const EntropyForm form : FormsToMake(expected_, n_)) {
      FrameBytes made;
      RETURN_ERROR(Write(form, &made));
      const double cost = FormCost(form, static_cast<double>(made.size()));
      if (made.size() >= n_ || cost >= least) continue;
      least = cost;
      *best = std::move(made);
    }
    return Error{};
  }

 private:
  Error Write(EntropyForm form, FrameBytes* made) {
    switch (form) {
      case EntropyForm::kPlain:
        return plain_.Write(made);
      case EntropyForm::kNeighbours:
        return with_neighbours_.Write(made);
      case EntropyForm::kPairs:
        return pairs_.Write(made);
    }
    return Error{};
  }

  const size_t n_;
  BytesWriter plain_, with_neighbours_;
  CudaPairsWriter pairs_;
  FormBytes expected_;
};

// Decodes a frame of bytes one at a time into `bytes` of device memory. Waits.
Error DecodeFrame(CudaDevice* device, const EntropyHead& head, const EntropyFrameView& view,
                  uint8_t* bytes) {
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  const bool has_rows = head.has_neighbours();
  CudaScratch rows(device), fault(device);
  RansReader reader(device);
  if (has_rows) RETURN_ERROR(rows.Reserve(head.coded_bytes()));
  RETURN_ERROR(fault.Reserve(sizeof(uint32_t)));
  CUDA_RETURN_IF_ERROR(cudaMemsetAsync(fault.as<void>(), 0, sizeof(uint32_t), stream));
  uint8_t* const coded = has_rows ? rows.as<uint8_t>() : bytes;
  RansModel model{head.neighbours, {}, view.of_context.data(), head.num_contexts()};
  std::copy_n(view.context_of_sum, kSums, model.context_of_sum);
  const RansStrings strings = {static_cast<int64_t>(head.coded_bytes()),
                               static_cast<int64_t>(NumRows(head.coded_bytes())),
                               static_cast<int64_t>(head.layout.num_parts)};
  std::vector<uint64_t> offsets = {0};
  for (const auto& part : view.parts) offsets.push_back(offsets.back() + part.size());
  RETURN_ERROR(
      reader.Submit(view.parts[0].data(), offsets, model, strings, coded, fault.as<uint32_t>()));
  if (has_rows) {
    RETURN_ERROR(device->SubmitCopyFromHost(bytes, view.uncoded.data(), head.begin));
    RETURN_ERROR(SubmitFromRows(stream, coded, static_cast<int64_t>(head.count), head.layout,
                                bytes + head.begin));
    RETURN_ERROR(device->SubmitCopyFromHost(bytes + head.begin + head.count,
                                            view.uncoded.data() + head.begin,
                                            view.uncoded.size() - head.begin));
  }
  uint32_t has_fault = 0;
  RETURN_ERROR(device->CopyToHost(&has_fault, fault.as<const void>(), sizeof(has_fault)));
  return has_fault == 0 ? Error{} : Refused();
}

}  // namespace

Error CudaEntropyFrame(CudaDevice* device, const uint8_t* bytes, size_t n, const CodesPlace& codes,
                       uint8_t* frame, size_t* length) {
  *length = 0;
  if (n == 0 || n > kMostEntropyBytes) return Error{};
  ContextChoice choice;
  if (codes.count > 0) RETURN_ERROR(Look(device, bytes + codes.begin, codes, &choice));
  Forms forms(device, bytes, n, codes);
  RETURN_ERROR(forms.Plan(codes, choice));
  FrameBytes best;
  RETURN_ERROR(forms.Best(&best));
  *length = best.size();
  return best.CopyTo(device, frame);
}

Error CudaReadEntropyFrame(CudaDevice* device, absl::Span<const uint8_t> frame, size_t most,
                           CudaScratch* bytes, size_t* n) {
  EntropyHead head;
  RETURN_ERROR(ReadEntropyHead(&frame, most, &head));
  if (head.count == 0) return Refused();
  *n = head.num_bytes;
  RETURN_ERROR(bytes->Reserve(*n));
  if (head.neighbours.count == kPairsForm) {
    PairsFrameView view;
    RETURN_ERROR(ViewPairsFrame(frame, *n, &view));
    return CudaReadPairsFrame(device, view, bytes->as<uint8_t>());
  }
  EntropyFrameView view;
  RETURN_ERROR(ViewEntropyFrame(head, frame, &view));
  for (const auto& part : view.parts) {
    if (part.size() % kWordBytes != 0) return Refused();
  }
  return DecodeFrame(device, head, view, bytes->as<uint8_t>());
}

}  // namespace thinwire
