#include "base/secret.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace thinwire {

std::string NewSecret() {
  std::string secret(32, '\0');
  ssize_t drawn;
  do {
    // Never partial, as it is less than 256 bytes.
    drawn = getrandom(secret.data(), secret.size(), 0);
  } while (drawn < 0 && errno == EINTR);
  // No kernel that runs gRPC gets here; a secret that others can guess would be worse.
  if (drawn != static_cast<ssize_t>(secret.size())) abort();
  return secret;
}

bool SameSecret(std::string_view a, std::string_view b) {
  if (a.size() != b.size() || a.size() < kMinSecretBytes) return false;
  volatile uint8_t difference = 0;  // volatile, so that no compiler ends the loop early
  for (size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<uint8_t>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

}  // namespace thinwire
