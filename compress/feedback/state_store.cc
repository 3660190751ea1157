#include "compress/feedback/state_store.h"

#include <cassert>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/digest.h"
#include "base/status.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

// Returns the codec that stores a row. q8 and q4 have one symmetric range per 256 elements, so that
// a large value costs only its neighbours.
CodecSpec CodecOf(StateStorage store) {
  CodecSpec values;
  switch (store) {
    case StateStorage::kF32:
      break;
    case StateStorage::kF16:
      values.values = Values::kF16;
      break;
    case StateStorage::kQ8:
    case StateStorage::kQ4:
      values.values = Values::kUniform;
      values.bits = store == StateStorage::kQ8 ? 8 : 4;
      values.range = Range::kMaxAbs;
      values.group = 256;
      break;
  }
  return CodecOfValues(values);
}

size_t CapacityOf(uint64_t limit_bytes, uint64_t row_bytes) {
  if (limit_bytes == 0 || row_bytes == 0) return SIZE_MAX;
  return limit_bytes / row_bytes;
}

}  // namespace

uint64_t StoredRowBytes(StateStorage store, int64_t elements) {
  return CodecMaxPayloadBytes(CodecOf(store), Shape{elements}, DType::kF32);
}

StateStore::StateStore(const FeedbackOptions& options)
    : options_(options),
      row_bytes_(StoredRowBytes(options.spec.store, options.sample.elements())),
      capacity_(CapacityOf(options.spec.limit_bytes, row_bytes_)),
      in_place_(options.spec.store == StateStorage::kF32 && options.spec.dir.empty()) {}

absl::StatusOr<std::unique_ptr<StateStore>> StateStore::New(const FeedbackOptions& options) {
  std::unique_ptr<StateStore> store(new StateStore(options));
  RETURN_IF_ERROR(store->MakePlace());
  const size_t bytes = CastPayloadBytes(DType::kF32, options.sample.elements());
  if (!store->in_place_) {
    ASSIGN_OR_RETURN(store->open_, Buffer::Allocate(options.device, bytes));
  } else if (!options.device->is_host()) {
    ASSIGN_OR_RETURN(store->copied_, Buffer::Allocate(options.device->host(), bytes));
  }
  return store;
}

absl::Status StateStore::MakePlace() {
  if (!options_.spec.dir.empty()) {
    ASSIGN_OR_RETURN(place_, NewRowFile(options_.spec.dir, row_bytes_));
  } else {
    Device* const device = in_place_ ? options_.device : options_.device->host();
    place_ = NewRowMemory(device, row_bytes_, capacity_);
  }
  return absl::OkStatus();
}

size_t StateStore::Find(uint64_t key) const {
  const auto found = rows_.find(key);
  return found == rows_.end() ? kAbsent : found->second;
}

absl::StatusOr<size_t> StateStore::Add(uint64_t key) {
  assert(Find(key) == kAbsent && keys_.size() < capacity_);
  RETURN_IF_ERROR(place_->Grow());
  keys_.push_back(key);
  return rows_[key] = keys_.size() - 1;
}

absl::Status StateStore::Clear() {
  keys_.clear();
  rows_.clear();
  return MakePlace();
}

TensorView StateStore::RowView(void* data) const {
  return ViewOf(data, DType::kF32, {options_.sample.elements()});
}

absl::StatusOr<TensorView> StateStore::Load(size_t row) {
  ASSIGN_OR_RETURN(uint8_t* const stored, place_->Read(row));
  if (in_place_) return RowView(stored);
  const TensorView values = RowView(open_->data());
  const absl::Status status = DecodeRow(stored, values);
  if (status.ok()) return values;
  return Annotated(status, absl::StrCat("state of row ", keys_[row]));
}

TensorView StateStore::ToWrite(size_t row) {
  return RowView(in_place_ ? place_->ToWrite(row) : open_->data());
}

absl::Status StateStore::Save(size_t row) {
  if (in_place_) return absl::OkStatus();
  RETURN_IF_ERROR(EncodeRow(RowView(open_->data()), place_->ToWrite(row)));
  return place_->Write(row);
}

absl::Status StateStore::EncodeRow(const TensorView& values, uint8_t* to) const {
  size_t bytes = 0;
  const CodecSpec spec = CodecOf(options_.spec.store);
  const PayloadBuffer row = {to, row_bytes_, &bytes};
  const Error error = options_.kernels->Encode(spec, values, KernelContext{}, row);
  if (error.code != static_cast<int32_t>(absl::StatusCode::kOutOfRange)) {
    return ToStatus(error);
  }
  RowSums zeros;
  zeros.count = 1;
  zeros.elements = options_.sample.elements();
  zeros.out.data = values.data;
  RETURN_IF_ERROR(ToStatus(options_.kernels->CombineRows(zeros)));
  return ToStatus(options_.kernels->Encode(spec, values, KernelContext{}, row));
}

absl::Status StateStore::DecodeRow(const uint8_t* from, const TensorView& values) const {
  return ToStatus(options_.kernels->Decode({from, row_bytes_}, CodecOf(options_.spec.store),
                                           KernelContext{}, values));
}

absl::StatusOr<const uint8_t*> StateStore::Stored(size_t row) {
  ASSIGN_OR_RETURN(const uint8_t* const stored, place_->Read(row));
  if (!in_place_ || options_.device->is_host()) return stored;
  uint8_t* const copy = static_cast<uint8_t*>(copied_->data());
  RETURN_IF_ERROR(ToStatus(options_.device->CopyToHost(copy, stored, row_bytes_)));
  return copy;
}

absl::Status StateStore::ReadStored(size_t row, absl::Span<uint8_t> to) {
  assert(to.size() == row_bytes_);
  ASSIGN_OR_RETURN(const uint8_t* const stored, Stored(row));
  std::memcpy(to.data(), stored, row_bytes_);
  return absl::OkStatus();
}

absl::Status StateStore::Restore(uint64_t key, absl::Span<const uint8_t> stored) {
  if (stored.size() != row_bytes_) {
    return absl::InvalidArgumentError(absl::StrCat("state of row ", key, " has ", stored.size(),
                                                   " bytes, want ", row_bytes_, " as ",
                                                   Name(options_.spec.store)));
  }
  size_t row = Find(key);
  if (row == kAbsent) {
    if (keys_.size() == capacity_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("state of row ", key, " exceeds limit_bytes ", options_.spec.limit_bytes,
                       ", which hold ", capacity_, " rows"));
    }
    ASSIGN_OR_RETURN(row, Add(key));
  }
  if (in_place_) {
    return ToStatus(options_.device->CopyFromHost(place_->ToWrite(row), stored.data(), row_bytes_));
  }
  std::memcpy(place_->ToWrite(row), stored.data(), row_bytes_);
  return place_->Write(row);
}

absl::StatusOr<uint64_t> StateStore::RowDigest(size_t row) {
  ASSIGN_OR_RETURN(const uint8_t* const stored, Stored(row));
  Digest digest;
  digest.AddWord(keys_[row]);
  digest.Add(stored, row_bytes_);
  return digest.value();
}

}  // namespace thinwire
