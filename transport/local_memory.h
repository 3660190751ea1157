// Memory that the ends of a link on one machine share: the host's and, between GPUs, slots in their
// devices' memory. Both are offered in the call's metadata (docs/wire.md).
#pragma once

#include <map>
#include <memory>
#include <string>

#include "grpcpp/grpcpp.h"
#include "transport/device_slots.h"
#include "transport/shared_memory.h"
#include "wire/link.h"

namespace thinwire {

using CallMetadata = std::multimap<grpc::string_ref, grpc::string_ref>;

// Returns the value of this name; empty if there is none.
std::string ValueOf(const CallMetadata& metadata, const char* name);

// One end's share.
struct LocalMemory {
  std::shared_ptr<SharedMemory> host;            // null: nothing is shared
  std::shared_ptr<ReceivingDeviceSlots> device;  // null: this end receives nothing there
};

// Makes what the dialling end offers.
LocalMemory MakeLocalMemory(const LinkOptions& options);

// Opens, at the other end, what the caller's metadata offers. Allocates slots of this end's device
// if the caller has a device, too.
LocalMemory OpenLocalMemory(const CallMetadata& metadata, const LinkOptions& options);

// Opens the device slots that the peer's metadata offers; null if it has none or they do not open,
// of which options.on_note is told.
std::unique_ptr<SendingDeviceSlots> OpenDeviceSlots(const std::string& ticket,
                                                    const LinkOptions& options,
                                                    std::shared_ptr<SharedMemory> host);

}  // namespace thinwire
