// What a backend's shared library gives to a stage server: the three interfaces of its devices
// (tensor/device.h, nn/ops.h, compress/kernels.h) behind one C symbol, and what they may offer
// besides (tensor/direct_copies.h).
//
// Only pure-virtual interfaces of plain data cross the border, and each side frees what it
// allocated (objects through their virtual destructors). Both sides come from one build: the
// loader (backend/load.h) compares build ids before it touches anything else.
#pragma once

#include <cstdint>

#include "compress/kernels.h"
#include "nn/ops.h"
#include "tensor/device.h"
#include "tensor/direct_copies.h"

namespace thinwire {

struct DeviceDescription {
  char name[128] = {};       // the maker's: "NVIDIA H200"
  char libraries[256] = {};  // "CUDA 13.0, cuDNN 9.19.0, NVRTC 13.0, cuBLAS 13.1.0, driver 580.65"
};

// Any thread may call it. What it hands out does not outlive the library, which is never closed.
class BackendPlugin {
 public:
  virtual ~BackendPlugin() = default;

  // Unavailable when the backend cannot work here at all, and says why ("no driver").
  virtual Error CountDevices(int* count) = 0;
  // InvalidArgument naming the number of devices unless 0 <= index < count.
  virtual Error Describe(int index, DeviceDescription* description) = 0;
  // There is one of each per device and process, for ever. *copies is null where the device has
  // none.
  virtual Error Open(int index, Device** device, CodecKernels** kernels, DirectCopies** copies) = 0;
  // The caller deletes *ops. `device` from Open.
  virtual Error NewOps(Device* device, const OpsOptions& options, Ops** ops) = 0;
};

struct BackendEntry {
  const char* build_id;  // first, so that it can be read whatever else has changed
  BackendPlugin* plugin;
};

}  // namespace thinwire

// The one symbol of a plugin.
extern "C" const thinwire::BackendEntry* thinwire_backend();
