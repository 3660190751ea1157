#include "stage_server/swap/host_place.h"

#include <utility>

#include "base/status.h"
#include "tensor/device.h"

namespace thinwire {
namespace {

class HostBytes final : public SwappedBytes {
 public:
  HostBytes(Device* device, std::shared_ptr<Buffer> copy)
      : device_(device), copy_(std::move(copy)) {}

  absl::StatusOr<std::shared_ptr<Buffer>> Read() override {
    ASSIGN_OR_RETURN(auto memory, Buffer::Allocate(device_, copy_->bytes()));
    RETURN_IF_ERROR(ToStatus(device_->CopyFromHost(memory->data(), copy_->data(), copy_->bytes())));
    return memory;
  }

 private:
  Device* const device_;
  const std::shared_ptr<Buffer> copy_;
};

class HostPlace final : public SwapPlace {
 public:
  bool Relieves(const Device& device) const override { return !device.is_host(); }

  absl::StatusOr<std::unique_ptr<SwappedBytes>> Write(const Buffer& memory, size_t bytes) override {
    Device* const device = memory.device();
    ASSIGN_OR_RETURN(auto copy, Buffer::Allocate(device->host(), bytes));
    RETURN_IF_ERROR(ToStatus(device->CopyToHost(copy->data(), memory.data(), bytes)));
    return std::make_unique<HostBytes>(device, std::move(copy));
  }
};

}  // namespace

std::unique_ptr<SwapPlace> NewHostPlace() { return std::make_unique<HostPlace>(); }

}  // namespace thinwire
