// Fuzz test: reads any bytes as the state file of one end of a cut. They must be refused, or read
// and then written as something that reads again. The first byte chooses the storage.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "compress/cpu/kernels.h"
#include "compress/feedback/state_file.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

std::unique_ptr<StateStore> StoreOf(uint8_t choice) {
  constexpr StateStorage kStorages[] = {StateStorage::kF32, StateStorage::kF16, StateStorage::kQ8,
                                        StateStorage::kQ4};
  StateStoreOptions options;
  options.store = kStorages[choice % 4];
  options.elements = 5;
  options.limit_bytes = 1000;
  options.device = CpuDevice();
  options.kernels = CpuCodecKernels();
  auto store = StateStore::New(options);
  if (!store.ok()) std::abort();
  return *std::move(store);
}

std::string Written(StateStore* store, const Tensor& factor, const StoredAxes& axes) {
  std::string bytes;
  const auto append = [&bytes](std::string_view piece) {
    bytes += piece;
    return absl::OkStatus();
  };
  const absl::Status status = WriteState("end", store, factor, axes, append);
  if (!status.ok()) std::abort();
  return bytes;
}

}  // namespace
}  // namespace thinwire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto store = thinwire::StoreOf(data[0]), again = thinwire::StoreOf(data[0]);
  thinwire::Tensor factor;
  thinwire::StoredAxes axes;
  const std::string_view file(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (!thinwire::ReadState("end", file, store.get(), &factor, &axes).ok()) return 0;
  const std::string written = thinwire::Written(store.get(), factor, axes);
  if (!thinwire::ReadState("end", written, again.get(), &factor, &axes).ok() ||
      thinwire::Written(again.get(), factor, axes) != written) {
    std::abort();
  }
  return 0;
}
