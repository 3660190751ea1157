#include "compress/cuda/entropy_frame.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "compress/bytes.h"
#include "compress/cuda/frame_bytes.h"
#include "compress/cuda/pairs_frame.h"
#include "compress/cuda/rans.h"
#include "compress/cuda/stretches.h"
#include "compress/entropy/context_choice.h"
#include "compress/entropy/form_choice.h"
#include "compress/entropy/frequencies.h"
#include "compress/entropy/layout.h"
#include "compress/entropy/pairs_layout.h"

namespace thinwire {
namespace {

// Finds, before all codes are read, the neighbours and whether codes may pay in pairs. Waits.
Error Look(CudaDevice* device, const uint8_t* codes, const CodesPlace& place,
           ContextChoice* choice) {
  const auto n = static_cast<int64_t>(place.count);
  std::vector<uint32_t> where = SampledPieces(place.count, place.distances);
  const size_t num_pieces = where.size(), num_distances = place.distances.size();
  const size_t sample_bytes = (1 + num_distances) * num_pieces * kSampledRows * kStates;
  // The sample, and behind it the number of large codes.
  const size_t seen_bytes = sample_bytes + sizeof(uint32_t);
  Device* const host = device->host();
  void* locked = nullptr;
  RETURN_ERROR(host->Allocate(seen_bytes, &locked));
  const auto free = [host](uint8_t* memory) { host->Free(memory); };
  const std::unique_ptr<uint8_t, decltype(free)> seen(static_cast<uint8_t*>(locked), free);
  CudaScratch on_device(device), where_memory(device);
  RETURN_ERROR(on_device.Reserve(seen_bytes));
  auto* const sample = on_device.as<uint8_t>();
  RETURN_ERROR(
      SubmitLargeLooks(device, codes, n, reinterpret_cast<uint32_t*>(sample + sample_bytes)));
  if (num_pieces > 0) {
    where.insert(where.end(), place.distances.begin(), place.distances.end());
    const size_t where_bytes = where.size() * sizeof(uint32_t);
    RETURN_ERROR(where_memory.Reserve(where_bytes));
    RETURN_ERROR(device->SubmitCopyFromHost(where_memory.as<void>(), where.data(), where_bytes));
    RETURN_ERROR(SubmitSample(device, codes, n, where_memory.as<const uint32_t>(),
                              static_cast<int64_t>(num_pieces), static_cast<int64_t>(num_distances),
                              sample));
  }
  RETURN_ERROR(device->CopyToHost(seen.get(), sample, seen_bytes));
  if (num_pieces > 0) {
    *choice = ChooseNeighboursOf(place.count, place.distances, {seen.get(), sample_bytes});
  }
  const auto large_looks = LoadAs<uint32_t>(seen.get() + sample_bytes);
  choice->may_pay_in_pairs &= MayPayInPairs(place.count, large_looks);
  return Error{};
}

// Histograms from which the forms are planned; zeros for forms that are not considered. They lie so
// in device memory.
struct Counts {
  Frequencies outside;       // of bytes that none of the others counts
  Frequencies pairs, large;  // of codes in pairs, see CudaPairsWriter
  SumCounts of_rows;         // of codes with neighbours
};
static_assert(sizeof(Counts) == (3 + kSums) * sizeof(Frequencies), "one behind the other");

// Writer of a string as a frame that codes one byte at a time.
class BytesWriter {
 public:
  BytesWriter(CudaDevice* device, const uint8_t* bytes, size_t n)
      : device_(device), bytes_(bytes), coded_(bytes), head_(HeadWithoutNeighbours(n)) {}

  Error UseNeighbours(const CodesPlace& place, const ContextChoice& choice) {
    head_.neighbours = choice.neighbours;
    head_.layout = choice.layout;
    head_.is_in_parts = place.count >= kLeastInParts;
    head_.begin = place.begin;
    head_.count = place.count;
    RETURN_ERROR(rows_.Reserve(head_.coded_bytes()));
    RETURN_ERROR(sums_.Reserve(head_.coded_bytes()));
    coded_ = rows_.as<const uint8_t>();
    RETURN_ERROR(SubmitToRows(device_, bytes_ + place.begin, static_cast<int64_t>(place.count),
                              head_.layout, rows_.as<uint8_t>()));
    return SubmitSumsOfNeighbours(device_, head_.neighbours, coded_,
                                  static_cast<int64_t>(NumRows(place.count)), head_.layout,
                                  sums_.as<uint8_t>());
  }

  // Adds the histogram of the rows for each sum of neighbours to `of_rows`, in device memory.
  Error SubmitCounts(uint32_t* of_rows) const {
    return SubmitByteCounts(device_, coded_, sums(), static_cast<int64_t>(head_.coded_bytes()),
                            of_rows);
  }

  // Chooses the tables from the histogram. Returns the expected size of the frame.
  double Plan(const SumCounts& counts) { return ChooseTables(counts, &head_, &tables_); }

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
    made->AddCoded(writer_, head_.is_in_parts);
    return Error{};
  }

 private:
  // Returns the sums, one per byte of coded_; null without neighbours.
  const uint8_t* sums() const {
    return head_.has_neighbours() ? sums_.as<const uint8_t>() : nullptr;
  }

  CudaDevice* const device_;
  const uint8_t* const bytes_;
  const uint8_t* coded_;
  EntropyHead head_;
  EntropyTables tables_;
  CudaScratch rows_{device_}, sums_{device_};
  RansWriter writer_{device_};
};

// A string in all forms that its frame may have.
class Forms {
 public:
  Forms(CudaDevice* device, const uint8_t* bytes, size_t n, const CodesPlace& place)
      : device_(device),
        bytes_(bytes),
        n_(n),
        plain_(device, bytes, n),
        with_neighbours_(device, bytes, n),
        pairs_(device, bytes, n, place) {}

  // Plans each form, from one look at all bytes. Waits, as Best does.
  Error Plan(const CodesPlace& place, const ContextChoice& choice) {
    const bool has_neighbours = choice.neighbours.count > 0;
    const bool has_pairs = place.count > 0 && choice.may_pay_in_pairs;
    if (has_neighbours) RETURN_ERROR(with_neighbours_.UseNeighbours(place, choice));
    Counts counts = {};
    RETURN_ERROR(Count(place, has_neighbours, has_pairs, &counts));
    SumCounts of_all = {counts.outside};
    if (has_pairs) expected_.pairs = pairs_.Plan(counts.pairs, counts.large);
    if (has_neighbours) {
      expected_.neighbours = with_neighbours_.Plan(counts.of_rows);
      AddCounts(CodesOfSums(counts.of_rows, place.count), &of_all[0]);
    } else if (has_pairs) {
      AddCounts(pairs_.CountsOfCodes(counts.pairs, counts.large), &of_all[0]);
    }
    expected_.plain = plain_.Plan(of_all);
    return Error{};
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
  // Waits.
  Error Count(const CodesPlace& place, bool has_neighbours, bool has_pairs, Counts* counts) {
    CudaScratch memory(device_);
    const size_t count_bytes = has_neighbours ? sizeof(Counts) : offsetof(Counts, of_rows);
    RETURN_ERROR(memory.ReserveZeros(count_bytes));
    auto* const on_device = memory.as<Counts>();
    const auto count_outside = [&](size_t begin, size_t end) {
      if (begin == end) return Error{};
      return SubmitByteCounts(device_, bytes_ + begin, /*sums=*/nullptr,
                              static_cast<int64_t>(end - begin), on_device->outside.data());
    };
    if (has_neighbours) {
      RETURN_ERROR(with_neighbours_.SubmitCounts(on_device->of_rows.data()->data()));
    }
    if (has_pairs) {
      RETURN_ERROR(pairs_.SubmitCounts(on_device->pairs.data(), on_device->large.data()));
    }
    const bool has_codes = has_neighbours || has_pairs;
    RETURN_ERROR(count_outside(0, has_codes ? place.begin : n_));
    if (has_codes) RETURN_ERROR(count_outside(place.begin + place.count, n_));
    return device_->CopyToHost(counts, on_device, count_bytes);
  }

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

  CudaDevice* const device_;
  const uint8_t* const bytes_;
  const size_t n_;
  BytesWriter plain_, with_neighbours_;
  CudaPairsWriter pairs_;
  FormBytes expected_;
};

// Decodes a frame of bytes one at a time into `bytes` of device memory. Waits.
Error DecodeFrame(CudaDevice* device, const EntropyHead& head, const EntropyFrameView& view,
                  uint8_t* bytes) {
  const bool has_rows = head.has_neighbours();
  CudaScratch rows(device), fault(device);
  RansReader reader(device);
  if (has_rows) RETURN_ERROR(rows.Reserve(head.coded_bytes()));
  RETURN_ERROR(fault.ReserveZeros(sizeof(uint32_t)));
  uint8_t* const coded = has_rows ? rows.as<uint8_t>() : bytes;
  RansModel model{head.neighbours, {}, view.of_context.data(), head.num_contexts()};
  std::copy_n(view.context_of_sum, kSums, model.context_of_sum);
  const RansStrings strings = {static_cast<int64_t>(head.coded_bytes()),
                               static_cast<int64_t>(NumRows(head.coded_bytes())),
                               static_cast<int64_t>(head.layout.num_parts)};
  RETURN_ERROR(reader.Submit(view.parts, model, strings, coded, fault.as<uint32_t>()));
  if (has_rows) {
    RETURN_ERROR(device->SubmitCopyFromHost(bytes, view.uncoded.data(), head.begin));
    RETURN_ERROR(SubmitFromRows(device, coded, static_cast<int64_t>(head.count), head.layout,
                                bytes + head.begin));
    RETURN_ERROR(device->SubmitCopyFromHost(bytes + head.begin + head.count,
                                            view.uncoded.data() + head.begin,
                                            view.uncoded.size() - head.begin));
  }
  uint32_t has_fault = 0;
  RETURN_ERROR(device->CopyToHost(&has_fault, fault.as<const void>(), sizeof(has_fault)));
  return has_fault == 0 ? Error{} : RansReader::Refused();
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
  if (head.count == 0) return RansReader::Refused();
  *n = head.num_bytes;
  RETURN_ERROR(bytes->Reserve(*n));
  if (head.neighbours.count == kPairsForm) {
    PairsFrameView view;
    RETURN_ERROR(ViewPairsFrame(frame, *n, &view));
    return CudaReadPairsFrame(device, view, bytes->as<uint8_t>());
  }
  EntropyFrameView view;
  RETURN_ERROR(ViewEntropyFrame(head, frame, &view));
  return DecodeFrame(device, head, view, bytes->as<uint8_t>());
}

}  // namespace thinwire
