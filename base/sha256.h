// SHA-256 (FIPS 180-4), to identify bytes.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX

namespace thinwire {

// Returns 64 hexadecimal digits, lower case.
std::string Sha256(std::string_view bytes);

// Does the same for bytes that come in pieces.
class Sha256Stream {
 public:
  Sha256Stream();

  void Add(std::string_view piece);
  // Returns the digest of all pieces so far; more may follow.
  std::string Digest() const;

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace thinwire
