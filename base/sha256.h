// SHA-256 (FIPS 180-4): which bytes these are.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX

namespace thinwire {

// 64 hexadecimal digits, lower case.
std::string Sha256(std::string_view bytes);

// The same of bytes that come in pieces.
class Sha256Stream {
 public:
  Sha256Stream();

  void Add(std::string_view piece);
  // Of all pieces so far; more may follow.
  std::string Digest() const;

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace thinwire
