#include "backend/build_id.h"

#include <string>

#include "backend/interface_digest.h"
#include "base/build_info.h"

namespace thinwire {

const char* BackendBuildId() {
  static const std::string* const id =
      new std::string(BuildId() + ", interface " THINWIRE_INTERFACE_DIGEST);
  return id->c_str();
}

}  // namespace thinwire
