#include "coordinator/data/fetch.h"

#include <stdlib.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/stand_in.h"
#include "base/status.h"
#include "coordinator/session/program.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;

// Exit codes of curl (its manual, "EXIT CODES").
constexpr int kCurlRefused = 22, kCurlNoRange = 33, kCurlBadResume = 36;
constexpr int kCurlBrokeOff = 18, kCurlTimeout = 28, kCurlNothing = 52, kCurlReceive = 56;
// Number of times that an interrupted download is continued at once.
constexpr int kResumes = 3;

std::string LastName(const std::string& address) {
  return address.substr(address.find_last_of('/') + 1);
}

bool IsAddress(const std::string& from) { return absl::StrContains(from, "://"); }

// Returns the archives and then the files under their own names, in a folder or below an address.
std::vector<OfficialSource> Mirrored(const OfficialData& data, std::string from) {
  while (from.size() > 1 && from.back() == '/') from.pop_back();
  std::vector<OfficialSource> sources;
  for (const OfficialSource& source : data.sources) {
    if (source.archive.empty()) continue;
    sources.push_back({absl::StrCat(from, "/", LastName(source.archive)), source.folder, {}});
  }
  OfficialSource files;
  for (const OfficialFile& file : data.files) {
    files.files.push_back(absl::StrCat(from, "/", file.name));
  }
  sources.push_back(files);
  return sources;
}

// Checks that every file of the data set in `dir` is the official one.
absl::Status CheckFiles(const OfficialData& data, const std::string& dir) {
  for (const OfficialFile& file : data.files) {
    const std::string path = absl::StrCat(dir, "/", file.name);
    ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
    RETURN_IF_ERROR(CheckOfficial(file, path, content));
  }
  return absl::OkStatus();
}

// Returns the folder that has every file: `dir`, or a subfolder unpacked by hand; empty if there is
// none.
std::string FolderOf(const OfficialData& data, const std::string& dir) {
  std::vector<std::string> folders = {dir};
  for (const OfficialSource& source : data.sources) {
    if (!source.folder.empty()) folders.push_back(absl::StrCat(dir, "/", source.folder));
  }
  for (std::string& folder : folders) {
    if (CheckFiles(data, folder).ok()) return std::move(folder);
  }
  return "";
}

std::uintmax_t SizeOf(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

void Remove(const std::string& path) {
  std::error_code ignored;  // a failure shows at the folder's next use
  fs::remove_all(path, ignored);
}

// A hidden folder in `dir`; what was checked there can be renamed to its final place.
class Staging {
 public:
  static absl::StatusOr<std::unique_ptr<Staging>> Make(const std::string& dir) {
    std::error_code error;
    fs::create_directories(dir, error);
    std::string path = absl::StrCat(dir, "/.fetch-XXXXXX");
    if (error) return FileError(dir, "cannot make the folder", error.value());
    if (mkdtemp(path.data()) == nullptr) return FileError(dir, "cannot write into it", errno);
    return std::unique_ptr<Staging>(new Staging(path));
  }
  ~Staging() { Remove(path_); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit Staging(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

class Fetcher {
 public:
  Fetcher(const OfficialData& data, const FetchOptions& options, Interruption* interruption)
      : data_(data), options_(options), interruption_(interruption) {}

  absl::Status From(const OfficialSource& source) {
    ASSIGN_OR_RETURN(const std::unique_ptr<Staging> staging, Staging::Make(options_.dir));
    absl::Status status =
        source.archive.empty() ? Files(source, staging->path()) : Archive(source, staging->path());
    if (status.ok()) status = CheckFiles(data_, staging->path());
    if (status.ok()) status = Move(staging->path());
    const bool goes_on =
        absl::IsUnavailable(status) || absl::IsCancelled(status) || absl::IsNotFound(status);
    if (!goes_on) {
      for (const std::string& part : parts_) Remove(part);
    }
    return status;
  }

 private:
  absl::Status Archive(const OfficialSource& source, const std::string& staging) {
    ASSIGN_OR_RETURN(const std::string archive, Download(source.archive));
    const bool is_zip = absl::EndsWith(source.archive, ".zip");
    std::vector<std::string> command =
        is_zip ? std::vector<std::string>{"unzip", "-q", "-o", "-j", archive}
               : std::vector<std::string>{"tar",
                                          "--extract",
                                          "--gzip",
                                          "--no-same-owner",
                                          "--strip-components=1",
                                          "--directory",
                                          staging,
                                          "--file",
                                          archive};
    for (const OfficialFile& file : data_.files) {
      command.push_back(absl::StrCat(source.folder, "/", file.name));
    }
    if (is_zip) command.insert(command.end(), {"-d", staging});
    ASSIGN_OR_RETURN(const int code, RunProgram(command, interruption_));
    if (code == 0) return absl::OkStatus();
    return StandInOr(archive, absl::DataLossError(absl::StrCat(command[0], " cannot unpack ",
                                                               LastName(source.archive),
                                                               " (exit code ", code, ")")));
  }

  absl::Status Files(const OfficialSource& source, const std::string& staging) {
    for (size_t i = 0; i < data_.files.size(); ++i) {
      ASSIGN_OR_RETURN(const std::string path, Download(source.files[i]));
      std::error_code error;
      fs::copy_file(path, absl::StrCat(staging, "/", data_.files[i].name), error);
      if (error) return FileError(staging, "cannot copy into it", error.value());
    }
    return absl::OkStatus();
  }

  // Returns the path of the downloaded file; a file of this machine stays where it is.
  absl::StatusOr<std::string> Download(const std::string& address) {
    if (!IsAddress(address)) {
      if (fs::is_regular_file(fs::status(address))) return address;
      return absl::UnavailableError("is no file");
    }
    const std::string part = absl::StrCat(options_.dir, "/", LastName(address), ".part");
    parts_.push_back(part);
    if (options_.shows_progress) std::fprintf(stderr, "%s\n", address.c_str());
    int code = 0;
    for (int attempt = 0; attempt <= kResumes; ++attempt) {
      const std::uintmax_t before = SizeOf(part);
      ASSIGN_OR_RETURN(code, Curl(address, part));
      if (code == 0) return part;
      const bool cannot_resume =
          code == kCurlRefused || code == kCurlNoRange || code == kCurlBadResume;
      const bool broke_off = code == kCurlBrokeOff || code == kCurlTimeout ||
                             code == kCurlNothing || code == kCurlReceive;
      if (cannot_resume && before > 0) {
        Remove(part);
      } else if (!broke_off || SizeOf(part) == before) {
        break;
      }
    }
    return absl::UnavailableError(
        absl::StrCat("curl ended with code ", code, " after ", SizeOf(part), " bytes"));
  }

  absl::StatusOr<int> Curl(const std::string& address, const std::string& part) {
    const char* progress = options_.shows_progress ? "--progress-bar" : "--silent";
    return RunProgram({"curl", "--fail", "--location", "--show-error", progress,
                       "--connect-timeout", "30", "--speed-limit", "1", "--speed-time", "60",
                       "--continue-at", "-", "--output", part, "--url", address},
                      interruption_);
  }

  absl::Status Move(const std::string& staging) {
    for (const OfficialFile& file : data_.files) {
      const std::string to = absl::StrCat(options_.dir, "/", file.name);
      std::error_code error;
      fs::rename(absl::StrCat(staging, "/", file.name), to, error);
      if (error) return FileError(to, "cannot be put there", error.value());
    }
    return absl::OkStatus();
  }

  const OfficialData& data_;
  const FetchOptions& options_;
  Interruption* const interruption_;
  std::vector<std::string> parts_;  // files that were downloaded, or begun
};

}  // namespace

absl::StatusOr<std::string> FetchData(const OfficialData& data, const FetchOptions& options,
                                      Interruption* interruption) {
  if (std::string folder = FolderOf(data, options.dir); !folder.empty()) return folder;
  std::string failures;
  for (const OfficialSource& source :
       options.from.empty() ? data.sources : Mirrored(data, options.from)) {
    const absl::Status status = Fetcher(data, options, interruption).From(source);
    if (status.ok()) return options.dir;
    const bool is_address_at_fault = absl::IsUnavailable(status) || absl::IsDataLoss(status);
    if (!is_address_at_fault) return status;
    absl::StrAppend(&failures, "\n  ", source.archive.empty() ? source.files[0] : source.archive,
                    ": ", std::string(status.message()));
  }
  return absl::UnavailableError(absl::StrCat("cannot fetch ", data.name, ":", failures));
}

}  // namespace thinwire
