#include "config/local_paths.h"

#include "base/path.h"
#include "config/stage_paths.h"

namespace thinwire {

void MakeCoordinatorPathsAbsolute(Experiment* experiment) {
  if (experiment->has_init()) experiment->set_init(AbsolutePath(experiment->init()));
  if (!experiment->has_security()) return;
  SecurityConfig& security = *experiment->mutable_security();
  if (security.has_tls_cert()) security.set_tls_cert(AbsolutePath(security.tls_cert()));
  if (security.has_tls_key()) security.set_tls_key(AbsolutePath(security.tls_key()));
  if (security.has_tls_ca()) security.set_tls_ca(AbsolutePath(security.tls_ca()));
  if (security.has_token_file()) security.set_token_file(AbsolutePath(security.token_file()));
}

void MakeStagePathsAbsolute(Experiment* experiment) {
  const StagePaths paths = StagePathsOf(experiment);
  for (const auto* group : {&paths.plugins, &paths.data, &paths.state}) {
    for (const StagePath& path : *group) *path.value = AbsolutePath(*path.value);
  }
}

}  // namespace thinwire
