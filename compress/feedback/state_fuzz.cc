// Fuzz test: reads any bytes as the state file of one end of a cut. They must be refused, or read
// and then written as something that reads again. The first byte chooses the storage.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compress/codecs/new_codec.h"
#include "compress/cpu/kernels.h"
#include "compress/feedback/state_file.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

std::unique_ptr<StateStore> StoreOf(uint8_t choice) {
  constexpr StateStorage kStorages[] = {StateStorage::kF32, StateStorage::kF16, StateStorage::kQ8,
                                        StateStorage::kQ4};
  FeedbackOptions options;
  options.spec.store = kStorages[choice % 4];
  options.sample = {1, 5};
  options.spec.limit_bytes = 1000;
  options.device = CpuDevice();
  options.kernels = CpuCodecKernels();
  auto store = StateStore::New(options);
  if (!store.ok()) std::abort();
  return *std::move(store);
}

// Returns the parts that codecs make of these, if one of them left such.
std::vector<StoredTensor> ReadAndWritten(const std::vector<StoredTensor>& parts,
                                         std::shared_ptr<const Carry>* carry) {
  CodecSpec low_rank = DefaultSpec(CodecKind::kLowRank), rotated = DefaultSpec(CodecKind::kEcsq);
  low_rank.rank = 2;
  rotated.rotation = Rotation::kPrincipal;
  rotated.rotation_every = 1;
  CodecSpec divided = rotated;
  divided.outliers = 2;
  for (const CodecSpec& spec : {low_rank, rotated, divided}) {
    const auto codec = NewCodec(spec, CpuCodecKernels());
    if (!codec.ok()) std::abort();
    auto read = (*codec)->ReadCarry(parts, {1, 5}, CpuDevice());
    if (!read.ok()) continue;
    *carry = *std::move(read);
    return (*carry)->Parts();
  }
  return {};
}

std::string Written(StateStore* store, const std::vector<StoredTensor>& carried) {
  std::string bytes;
  const auto append = [&bytes](std::string_view piece) {
    bytes += piece;
    return absl::OkStatus();
  };
  const absl::Status status = WriteState("end", store, carried, append);
  if (!status.ok()) std::abort();
  return bytes;
}

}  // namespace
}  // namespace thinwire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto store = thinwire::StoreOf(data[0]), again = thinwire::StoreOf(data[0]);
  std::vector<thinwire::StoredTensor> carried;
  std::shared_ptr<const thinwire::Carry> carry;
  const std::string_view file(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (!thinwire::ReadState("end", file, store.get(), &carried).ok()) return 0;
  if (!carried.empty()) carried = thinwire::ReadAndWritten(carried, &carry);
  const std::string written = thinwire::Written(store.get(), carried);
  if (!thinwire::ReadState("end", written, again.get(), &carried).ok() ||
      thinwire::Written(again.get(), carried) != written) {
    std::abort();
  }
  return 0;
}
