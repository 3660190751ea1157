#include "backend/testing.h"

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "backend/load.h"
#include "base/status.h"

namespace thinwire {
namespace {

std::string PluginPath() {
  if (const char* const named = std::getenv("THINWIRE_PLUGIN")) return named;
  const char* const runfiles = std::getenv("TEST_SRCDIR");
  const std::string root =
      runfiles == nullptr ? "bazel-bin/" : std::string(runfiles) + "/thinwire/";
  return root + "backend/emulated/libthinwire_emulated.so";
}

TestedBackend OpenTested() {
  const absl::StatusOr<OpenedDevice> opened = OpenDevice("cuda:0", PluginPath());
  if (!opened.ok()) throw std::runtime_error(std::string(opened.status().message()));
  return TestedBackend{opened->plugin, opened->device, opened->kernels};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Ops>> TestedBackend::NewOps(const OpsOptions& options) const {
  Ops* ops = nullptr;
  RETURN_IF_ERROR(ToStatus(plugin->NewOps(device, options, &ops)));
  return std::unique_ptr<Ops>(ops);
}

const TestedBackend& BackendUnderTest() {
  static const TestedBackend backend = OpenTested();
  return backend;
}

}  // namespace thinwire
