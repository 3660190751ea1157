#include "data/sha256.h"

#include <openssl/evp.h>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace thinwire {

std::string Sha256(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<char*>(digest), size));
}

}  // namespace thinwire
