#pragma once

#include <memory>
#include <string>
#include <vector>

struct x509_st;

namespace mlxcel::hub {

/// Certificates that are trusted besides the system's.
class ExtraTrust {
 public:
  /// The PEM bundle of MLXCEL_EXTRA_CA_CERTS; nothing if that is unset.
  /// Throws Error naming the file if it is missing, unreadable, malformed,
  /// larger than `limit` bytes or holds no certificate.
  static ExtraTrust from_environment(uint64_t limit);

  bool empty() const {
    return certificates_.empty();
  }
  /// Adds them to an SSL_CTX of OpenSSL. False if it refuses one.
  bool add_to(void* ssl_context) const;

 private:
  struct Free {
    void operator()(x509_st* certificate) const;
  };
  std::vector<std::unique_ptr<x509_st, Free>> certificates_;
};

/// A file with the system's certificates, for a libcurl that was built on
/// another system than it runs on; empty if there is none.
std::string system_certificates();

}  // namespace mlxcel::hub
