#include "tensor/cuda/cupti.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

namespace thinwire {
namespace {

constexpr char kLibrary[] = "libcupti.so.13";
constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr cupti::Kind kKinds[] = {cupti::kConcurrentKernel, cupti::kMemcpy, cupti::kMemcpy2,
                                  cupti::kMemset};

Cupti* opened = nullptr;  // for CUPTI's callbacks, which carry no data of ours

std::vector<std::string> FoldersOf(const std::string& path) {
  std::vector<std::string> folders;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    if (end > begin) folders.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return folders;
}

std::string Variable(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

std::string OwnFolder() {
  Dl_info own;
  if (dladdr(reinterpret_cast<void*>(&OwnFolder), &own) == 0) return ".";
  const std::string path = own.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

DeviceActivity::Kind KindOf(const cupti::MemcpyRecord& copy) {
  if (copy.copy_kind == cupti::kHostToDevice) return DeviceActivity::Kind::kCopyFromHost;
  if (copy.copy_kind == cupti::kDeviceToHost) return DeviceActivity::Kind::kCopyToHost;
  return DeviceActivity::Kind::kCopy;
}

template <typename Record>
DeviceActivity ActivityOf(DeviceActivity::Kind kind, const Record& record, uint64_t amount) {
  DeviceActivity activity;
  activity.kind = kind;
  activity.stream = record.stream;
  activity.begin = static_cast<int64_t>(record.start);
  activity.end = static_cast<int64_t>(record.end);
  activity.amount = amount;
  return activity;
}

DeviceActivity KernelOf(const cupti::KernelRecord& kernel) {
  const int64_t blocks = int64_t{kernel.grid[0]} * kernel.grid[1] * kernel.grid[2];
  DeviceActivity activity =
      ActivityOf(DeviceActivity::Kind::kKernel, kernel, static_cast<uint64_t>(blocks));
  const std::string name = kernel.name == nullptr ? "?" : ShortKernelName(kernel.name);
  activity.name[name.copy(activity.name, sizeof(activity.name) - 1)] = '\0';
  return activity;
}

// Returns whether there is a library of this path, or by what the loader says of it, of this name.
bool IsThere(const std::string& path, const std::string& reason) {
  if (path.find('/') != std::string::npos) return access(path.c_str(), F_OK) == 0;
  return reason.compare(0, path.size() + 1, path + ":") != 0;  // it names a path that it has found
}

// Says why CUPTI of a path is unusable, if there is such, and what CuptiPaths are, in fewer words
// than a list; what may be long stands last.
std::string Sought(const CuptiPlaces& places, const std::string& unusable) {
  return (unusable.empty() ? "no " : unusable + "; no other ") + kLibrary + " is in " +
         places.beside + " or its lib, in lib64 or extras/CUPTI/lib64 of " + places.cuda_home +
         ", nor in or near LD_LIBRARY_PATH=" + places.library_path;
}

}  // namespace

std::vector<std::string> CuptiPaths(const CuptiPlaces& places) {
  std::vector<std::string> paths;
  for (const std::string& folder : FoldersOf(places.library_path)) {
    for (const char* const there :
         {"/", "/../../cu13/lib/", "/../../cuda_cupti/lib/", "/../extras/CUPTI/lib64/"}) {
      paths.push_back(folder + there + kLibrary);
    }
  }
  paths.push_back(places.beside + "/" + kLibrary);
  paths.push_back(places.beside + "/lib/" + kLibrary);
  paths.push_back(places.cuda_home + "/lib64/" + kLibrary);
  paths.push_back(places.cuda_home + "/extras/CUPTI/lib64/" + kLibrary);
  paths.emplace_back(kLibrary);
  return paths;
}

Cupti* Cupti::Open(std::string* why) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  if (opened != nullptr) return opened;
  const CuptiPlaces places = {OwnFolder(), Variable("LD_LIBRARY_PATH", ""),
                              Variable("CUDA_HOME", "/usr/local/cuda")};
  std::string unusable;
  opened = OpenFirst(CuptiPaths(places), &unusable);
  if (opened == nullptr) *why = Sought(places, unusable);
  return opened;
}

Cupti* Cupti::OpenFirst(const std::vector<std::string>& paths, std::string* why) {
  why->clear();
  for (const std::string& path : paths) {
    std::string reason;
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      reason = dlerror();
      if (!IsThere(path, reason)) continue;
    } else {
      auto found = std::unique_ptr<Cupti>(new Cupti);
      const std::string missing = found->FindFunctions(library);
      if (missing.empty()) return found.release();
      reason = path + ": has no " + missing;
    }
    if (why->empty()) *why = reason;
  }
  return nullptr;
}

std::string Cupti::FindFunctions(void* library) {
  std::string missing;
  const auto find = [&](const char* name, auto* function) {
    *function = reinterpret_cast<std::decay_t<decltype(*function)>>(dlsym(library, name));
    if (*function == nullptr) missing = name;
  };
  find("cuptiGetTimestamp", &get_timestamp_);
  find("cuptiActivityRegisterCallbacks", &register_callbacks_);
  find("cuptiActivityEnable", &enable_);
  find("cuptiActivityDisable", &disable_);
  find("cuptiActivityFlushAll", &flush_all_);
  find("cuptiActivityGetNextRecord", &next_record_);
  find("cuptiActivityGetNumDroppedRecords", &num_dropped_);
  find("cuptiGetResultString", &result_string_);
  return missing;
}

Error Cupti::Check(int result, const char* call) const {
  if (result == cupti::kSuccess) return Error{};
  const char* text = nullptr;
  if (result_string_(result, &text) != cupti::kSuccess || text == nullptr) text = "unknown";
  return MakeError(absl::StatusCode::kUnavailable, "CUPTI: %s: %s (%d)", call, text, result);
}

Error Cupti::Now(int64_t* nanoseconds) const {
  uint64_t now = 0;
  RETURN_ERROR(Check(get_timestamp_(&now), "cuptiGetTimestamp"));
  *nanoseconds = static_cast<int64_t>(now);
  return Error{};
}

Error Cupti::Start(OnActivity on_activity) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (on_activity_) {
      return MakeError(absl::StatusCode::kFailedPrecondition, "CUPTI: another recording goes on");
    }
    on_activity_ = std::move(on_activity);
    dropped_ = 0;
  }
  Error error =
      Check(register_callbacks_(GiveBuffer, TakeBuffer), "cuptiActivityRegisterCallbacks");
  for (const cupti::Kind kind : kKinds) {
    if (error.ok()) error = Check(enable_(kind), "cuptiActivityEnable");
  }
  if (error.ok()) return error;
  DisableAll();
  const std::lock_guard<std::mutex> lock(mutex_);
  on_activity_ = nullptr;
  return error;
}

Error Cupti::Stop(uint64_t* dropped) {
  DisableAll();
  // Forced, or a buffer with one activity that has not ended would be kept back.
  const Error error = Check(flush_all_(cupti::kFlushForced), "cuptiActivityFlushAll");
  const std::lock_guard<std::mutex> lock(mutex_);
  on_activity_ = nullptr;
  *dropped = dropped_;
  return error;
}

void Cupti::DisableAll() {
  for (const cupti::Kind kind : kKinds) (void)disable_(kind);
}

void Cupti::GiveBuffer(uint8_t** buffer, size_t* bytes, size_t* most_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(cupti::kRecordAlignment, kBufferBytes));
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;
  *most_records = 0;  // 0: as many as fit
}

void Cupti::TakeBuffer(void* context, uint32_t stream, uint8_t* buffer, size_t /*bytes*/,
                       size_t valid_bytes) {
  size_t dropped = 0;
  if (opened->num_dropped_(context, stream, &dropped) != cupti::kSuccess) dropped = 0;
  {
    const std::lock_guard<std::mutex> lock(opened->mutex_);
    opened->dropped_ += dropped;
    if (opened->on_activity_) opened->HandOut(buffer, valid_bytes);
  }
  std::free(buffer);
}

void Cupti::HandOut(uint8_t* buffer, size_t valid_bytes) {
  cupti::Record* record = nullptr;
  while (next_record_(buffer, valid_bytes, &record) == cupti::kSuccess) {
    if (record->kind == cupti::kConcurrentKernel) {
      on_activity_(KernelOf(*reinterpret_cast<const cupti::KernelRecord*>(record)));
    } else if (record->kind == cupti::kMemcpy || record->kind == cupti::kMemcpy2) {
      const auto& copy = *reinterpret_cast<const cupti::MemcpyRecord*>(record);
      on_activity_(ActivityOf(KindOf(copy), copy, copy.bytes));
    } else if (record->kind == cupti::kMemset) {
      const auto& clear = *reinterpret_cast<const cupti::MemsetRecord*>(record);
      on_activity_(ActivityOf(DeviceActivity::Kind::kClear, clear, clear.bytes));
    }
  }
}

}  // namespace thinwire
