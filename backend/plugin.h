// The border between a stage server and a backend's shared library. The library gives the three
// interfaces of its devices (tensor/device.h, nn/ops.h, compress/kernels.h) behind one C symbol,
// and may offer direct copies (tensor/direct_copies.h) and recordings of activities
// (tensor/activity.h) besides.
//
// Only pure-virtual interfaces of plain data cross the border. Each side frees what it allocated;
// objects are freed through their virtual destructors. Both sides come from one build: the loader
// (backend/load.h) compares build ids before it touches anything else.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/kernels.h"
#include "nn/ops.h"
#include "tensor/activity.h"
#include "tensor/device.h"
#include "tensor/direct_copies.h"

namespace thinwire {

struct DeviceDescription {
  char name[128] = {};       // name given by the maker: "NVIDIA H200"
  char libraries[256] = {};  // "CUDA 13.0, cuDNN 9.19.0, NVRTC 13.0, cuBLAS 13.1.0, driver 580.65"
};

// Backend of one library. Any thread may call it. What it hands out must not outlive the library,
// which is never closed.
class BackendPlugin {
 public:
  virtual ~BackendPlugin() = default;

  // Counts the devices. Returns Unavailable, with the reason ("no driver"), when the backend cannot
  // work on this machine at all.
  virtual Error CountDevices(int* count) = 0;
  // Describes device `index`. Returns InvalidArgument, with the number of devices, unless 0 <=
  // index < count.
  virtual Error Describe(int index, DeviceDescription* description) = 0;
  // Hands out the device, its kernels and its direct copies. There is one of each per device and
  // process, for ever, so the caller deletes none. *copies is null where the device has none.
  virtual Error Open(int index, Device** device, CodecKernels** kernels, DirectCopies** copies) = 0;
  // Makes operations for `device`, which is from Open. The caller deletes *ops.
  virtual Error NewOps(Device* device, const OpsOptions& options, Ops** ops) = 0;
  // Makes a recorder that keeps up to `most` activities of the devices; the caller deletes
  // *recorder. Unavailable, with what was looked for, where nothing can be recorded.
  virtual Error NewActivityRecorder(size_t most, ActivityRecorder** recorder) = 0;
};

struct BackendEntry {
  const char* build_id;  // first, so that it can be read whatever else has changed
  BackendPlugin* plugin;
};

}  // namespace thinwire

// Returns the plugin's entry. This is the one symbol that the loader looks up.
extern "C" const thinwire::BackendEntry* thinwire_backend();
