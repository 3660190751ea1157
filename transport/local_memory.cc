#include "transport/local_memory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/settings.h"
#include "wire/frame.h"
#include "wire/frame_checker.h"

namespace thinwire {
namespace {

// Says why messages take the slower way through the host's memory, unless they have no other.
void NoteOf(const absl::Status& status, const LinkOptions& options) {
  if (absl::IsUnimplemented(status) || !options.on_note) return;
  options.on_note(
      absl::StrCat(LinkName(options),
                   ": messages between GPUs go through the host's memory: ", status.message()));
}

// Allocates the slots in which this end receives.
void AddDevice(const LinkOptions& options, LocalMemory* memory) {
  auto device = ReceivingDeviceSlots::Allocate(options, memory->host);
  if (!device.ok()) return NoteOf(device.status(), options);
  memory->device = *std::move(device);
}

}  // namespace

std::string ValueOf(const CallMetadata& metadata, const char* name) {
  const auto found = metadata.find(name);
  if (found == metadata.end()) return "";
  return {found->second.data(), found->second.size()};
}

LocalMemory MakeLocalMemory(const LinkOptions& options) {
  auto host = SharedMemory::Create(std::min<uint64_t>(options.max_payload_bytes, kMaxChunkBytes));
  if (!host.ok()) return {};
  LocalMemory made{*std::move(host), nullptr};
  made.host->LockFor(options.copies, options.on_note);
  AddDevice(options, &made);
  return made;
}

LocalMemory OpenLocalMemory(const CallMetadata& metadata, const LinkOptions& options) {
  const std::string ticket = ValueOf(metadata, kMemoryMetadata);
  if (ticket.empty()) return {};
  auto host = SharedMemory::Open(ticket);
  if (!host.ok()) return {};
  LocalMemory opened{*std::move(host), nullptr};
  opened.host->LockFor(options.copies, options.on_note);
  if (!ValueOf(metadata, kDeviceMemoryMetadata).empty()) AddDevice(options, &opened);
  return opened;
}

std::unique_ptr<SendingDeviceSlots> OpenDeviceSlots(const std::string& ticket,
                                                    const LinkOptions& options,
                                                    std::shared_ptr<SharedMemory> host) {
  if (ticket.empty()) return nullptr;
  auto opened = SendingDeviceSlots::Open(ticket, options, std::move(host));
  if (opened.ok()) return *std::move(opened);
  NoteOf(opened.status(), options);
  return nullptr;
}

}  // namespace thinwire
