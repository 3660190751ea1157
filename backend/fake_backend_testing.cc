// A plugin with FAKE_DEVICES devices, none of which opens, to see what the loader makes of it.

#include "backend/build_id.h"
#include "backend/plugin.h"

namespace thinwire {
namespace {

[[maybe_unused]] const char* OtherBuildId() { return "0123456789ab gcc 1.0 opt, interface 00"; }

class FakeBackend final : public BackendPlugin {
 public:
  Error CountDevices(int* count) override {
    if (FAKE_DEVICES < 0) {
      return MakeError(absl::StatusCode::kUnavailable, "no NVIDIA driver was found");
    }
    *count = FAKE_DEVICES;
    return Error{};
  }
  Error Describe(int index, DeviceDescription* description) override {
    *description = DeviceDescription{"Fake", "Fake 1.0"};
    return index < FAKE_DEVICES ? Error{} : NoDevice();
  }
  Error Open(int /*index*/, Device** /*device*/, CodecKernels** /*kernels*/,
             DirectCopies** /*copies*/) override {
    return NoDevice();
  }
  Error NewOps(Device* /*device*/, const OpsOptions& /*options*/, Ops** /*ops*/) override {
    return NoDevice();
  }
  Error NewActivityRecorder(size_t /*most*/, ActivityRecorder** /*recorder*/) override {
    return NoDevice();
  }

 private:
  static Error NoDevice() {
    return MakeError(absl::StatusCode::kUnavailable, "the fake does not open");
  }
};

}  // namespace
}  // namespace thinwire

extern "C" const thinwire::BackendEntry* FAKE_ENTRY() {
  static thinwire::FakeBackend plugin;
  static const thinwire::BackendEntry entry = {thinwire::FAKE_BUILD_ID(), &plugin};
  return &entry;
}
