#include "base/sha256.h"

#include <openssl/evp.h>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace thinwire {

std::string Sha256(std::string_view bytes) {
  Sha256Stream stream;
  stream.Add(bytes);
  return stream.Digest();
}

void Sha256Stream::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256Stream::Sha256Stream() : context_(EVP_MD_CTX_new()) {
  EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
}

void Sha256Stream::Add(std::string_view piece) {
  EVP_DigestUpdate(context_.get(), piece.data(), piece.size());
}

std::string Sha256Stream::Digest() const {
  const std::unique_ptr<evp_md_ctx_st, Free> copy(EVP_MD_CTX_new());
  EVP_MD_CTX_copy_ex(copy.get(), context_.get());
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_DigestFinal_ex(copy.get(), digest, &size);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<char*>(digest), size));
}

}  // namespace thinwire
