#include "transport/shared_memory.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/crc32c.h"
#include "base/secret.h"
#include "base/status.h"

namespace thinwire {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr uint64_t kMagic = 0x7468696e77697265;  // "thinwire"
constexpr size_t kTokenBytes = 32;
// The seals forbid resizing, so the peer cannot take pages away that this process still reads.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

absl::Status Failed(const char* call) {
  return absl::UnavailableError(absl::StrCat("shared memory: ", call, ": ", strerror(errno)));
}

absl::Status NotOurs(const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat("shared memory: ", why));
}

// Identifies the memory. The peer may write here at any time, so Open reads it once.
struct MemoryLabel {
  uint64_t magic;
  uint64_t slot_bytes;
  char token[kTokenBytes];
};

size_t BytesOf(size_t slot_bytes, uint32_t slots) { return kPageBytes + 2 * slots * slot_bytes; }

// Time between the checks of a sender that waits for room whether it is still wanted.
constexpr absl::Duration kLookEvery = absl::Milliseconds(20);

// Sleeps while the word has that value, until a waiter is woken from any process or `most` has
// passed. May return early for no reason.
void SleepWhile(std::atomic<uint32_t>* word, uint32_t value, absl::Duration most) {
  const timespec time = absl::ToTimespec(most);
  syscall(SYS_futex, word, FUTEX_WAIT, value, &time, nullptr, 0);
}

void WakeWaiters(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
}

absl::StatusOr<uint8_t*> Map(int file, size_t bytes) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (memory == MAP_FAILED) return Failed("mmap");
  return static_cast<uint8_t*>(memory);
}

}  // namespace

// Contents of the first page.
struct SharedMemory::Header {
  MemoryLabel label;
  // 1 while a slot waits for its reader. First the slots that the dialling end writes, then the
  // other's.
  std::atomic<uint32_t> taken[2][kSlots];
  // Number of slots freed so far, in the same order. A sender that waits for a slot sleeps on it.
  std::atomic<uint32_t> freed[2];
  // The same as `taken`, for slots in devices' memory.
  std::atomic<uint32_t> device_taken[2][kDeviceSlots];
};

SharedMemory::Header* SharedMemory::header() const { return reinterpret_cast<Header*>(memory_); }

std::atomic<uint32_t>* SharedMemory::device_words(bool dials) const {
  return header()->device_taken[dials ? 0 : 1];
}

uint8_t* SharedMemory::Slot(bool dials, uint32_t slot) const {
  return memory_ + kPageBytes + ((dials ? 0 : kSlots) + slot) * slot_bytes_;
}

absl::StatusOr<std::shared_ptr<SharedMemory>> SharedMemory::Create(size_t slot_bytes) {
  static_assert(sizeof(Header) <= kPageBytes);
  slot_bytes = (slot_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  OwnedDescriptor file(memfd_create("thinwire-link", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.get() < 0) return Failed("memfd_create");
  if (ftruncate(file.get(), static_cast<off_t>(BytesOf(slot_bytes, kSlots))) != 0) {
    return Failed("ftruncate");
  }
  if (fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) return Failed("F_ADD_SEALS");
  ASSIGN_OR_RETURN(uint8_t* const memory, Map(file.get(), BytesOf(slot_bytes, kSlots)));
  std::shared_ptr<SharedMemory> made(
      new SharedMemory(std::move(file), memory, slot_bytes, End::kDials));
  MemoryLabel& label = made->header()->label;
  label.magic = kMagic;
  label.slot_bytes = slot_bytes;
  std::string token = NewSecret();
  token.resize(kTokenBytes);
  std::memcpy(label.token, token.data(), kTokenBytes);
  return made;
}

std::string SharedMemory::Ticket() const {
  const std::string token(header()->label.token, kTokenBytes);
  return absl::StrCat(getpid(), " ", file_.get(), " ", absl::BytesToHexString(token));
}

absl::StatusOr<std::shared_ptr<SharedMemory>> SharedMemory::Open(const std::string& ticket) {
  const std::vector<std::string> parts = absl::StrSplit(ticket, ' ');
  uint32_t process = 0, number = 0;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &process) ||
      !absl::SimpleAtoi(parts[1], &number) || parts[2].size() != 2 * kTokenBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("shared memory: ticket of ", ticket.size(), " bytes, want PID FD TOKEN"));
  }
  const std::string path = absl::StrCat("/proc/", process, "/fd/", number);
  // The process id may now belong to another process and the number to any file, so opening it must
  // have no effect.
  const OwnedDescriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0) return Failed("open");
  struct stat about = {};
  if (fstat(file.get(), &about) != 0) return Failed("fstat");
  const int seals = fcntl(file.get(), F_GET_SEALS);
  if (!S_ISREG(about.st_mode) || seals < 0 || (seals & kSeals) != kSeals) {
    return NotOurs("the ticket is of another file");
  }
  MemoryLabel found;
  if (pread(file.get(), &found, sizeof(found), 0) != sizeof(found) || found.magic != kMagic ||
      absl::BytesToHexString(std::string(found.token, kTokenBytes)) != parts[2]) {
    return NotOurs("the ticket is of other memory");
  }
  if (found.slot_bytes == 0 || found.slot_bytes > kMaxChunkBytes ||
      found.slot_bytes % kPageBytes != 0 ||
      static_cast<uint64_t>(about.st_size) != BytesOf(found.slot_bytes, kSlots)) {
    return NotOurs(absl::StrCat(about.st_size, " bytes with slots of ", found.slot_bytes));
  }
  ASSIGN_OR_RETURN(uint8_t* const memory, Map(file.get(), BytesOf(found.slot_bytes, kSlots)));
  return std::shared_ptr<SharedMemory>(
      new SharedMemory(OwnedDescriptor(-1), memory, found.slot_bytes, End::kListens));
}

SharedMemory::~SharedMemory() {
  for (const bool of_dialling : {true, false}) {
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      if (locked_[of_dialling ? 0 : 1][slot]) copies_->UnlockPages(Slot(of_dialling, slot));
    }
  }
  munmap(memory_, BytesOf(slot_bytes_, kSlots));
}

void SharedMemory::LockFor(DirectCopies* copies, std::function<void(const std::string&)> on_note) {
  copies_ = copies;
  on_note_ = std::move(on_note);
  may_lock_ = copies != nullptr;
}

// Locking pages takes as long as copying them a few times, so only slots that are used are locked,
// and once each.
bool SharedMemory::Lock(bool dials, uint32_t slot) {
  bool& locked = locked_[dials ? 0 : 1][slot];
  if (locked || !may_lock_) return locked;
  const Error error = copies_->LockPages(Slot(dials, slot), slot_bytes_);
  locked = error.ok();
  if (!locked && may_lock_.exchange(false) && on_note_) {
    on_note_(absl::StrCat("messages between stages are copied by the CPU: ", error.message));
  }
  return locked;
}

// Takes the lowest free slot, which is most likely to be in a cache. Only this thread sets `taken`
// at this end, so no compare-and-swap is needed. `freed` is read before the scan: a slot freed
// since then changes it, and SleepWhile returns at once.
std::optional<uint32_t> SharedMemory::Reserve(size_t bytes, SteadyTime deadline,
                                              const std::function<bool()>& is_over) {
  if (bytes > slot_bytes_) return std::nullopt;
  std::atomic<uint32_t>* const freed = &header()->freed[dials() ? 0 : 1];
  for (;;) {
    const uint32_t before = freed->load(std::memory_order_acquire);
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      std::atomic<uint32_t>& taken = header()->taken[dials() ? 0 : 1][slot];
      if (taken.load(std::memory_order_acquire) != 0) continue;
      taken.store(1, std::memory_order_release);
      return slot;
    }
    const SteadyTime now = SteadyTime::Now();
    if (now >= deadline || is_over()) return std::nullopt;
    SleepWhile(freed, before, std::min(kLookEvery, deadline - now));
  }
}

uint8_t* SharedMemory::Locked(uint32_t slot) {
  return Lock(dials(), slot) ? Slot(dials(), slot) : nullptr;
}

void SharedMemory::Release(uint32_t slot) {
  header()->taken[dials() ? 0 : 1][slot].store(0, std::memory_order_release);
}

uint32_t SharedMemory::Put(uint32_t slot, ByteSpan bytes) {
  return ExtendCrc32cAndCopy(/*crc=*/0, Slot(dials(), slot), bytes.data(), bytes.size());
}

absl::StatusOr<Payload> SharedMemory::Take(uint32_t slot, size_t bytes) {
  if (slot >= kSlots || bytes > slot_bytes_) {
    return absl::InvalidArgumentError(absl::StrCat("shared memory: ", bytes, " bytes in slot ",
                                                   slot, ", want up to ", slot_bytes_,
                                                   " in one under ", kSlots));
  }
  const bool of_dialling = !dials();
  std::atomic<uint32_t>* const taken = &header()->taken[of_dialling ? 0 : 1][slot];
  std::atomic<uint32_t>* const freed = &header()->freed[of_dialling ? 0 : 1];
  const auto free = [self = shared_from_this(), taken, freed](const void*) {
    taken->store(0, std::memory_order_release);
    freed->fetch_add(1, std::memory_order_release);
    WakeWaiters(freed);
  };
  const uint8_t* const memory = Slot(of_dialling, slot);
  return Payload{std::shared_ptr<const void>(memory, free), ByteSpan(memory, bytes)};
}

}  // namespace thinwire
