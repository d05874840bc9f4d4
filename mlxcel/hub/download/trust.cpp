#include "mlxcel/hub/download/trust.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/os.h"

namespace mlxcel::hub {

namespace {

constexpr const char* kVariable = "MLXCEL_EXTRA_CA_CERTS";

// Of Debian and Arch; Fedora and its kin; openSUSE; Alpine.
constexpr const char* kSystemBundles[] = {
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
};

struct BioFree {
  void operator()(BIO* bio) const {
    BIO_free(bio);
  }
};

[[noreturn]] void reject(const std::string& path, const std::string& reason) {
  fail(
      ErrorCode::invalid_input,
      fmt::format("[download] {} {}: {}", kVariable, path, reason)
  );
}

// Whether reading stopped because no further PEM block begins.
bool at_end() {
  unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  return ERR_GET_LIB(error) == ERR_LIB_PEM &&
         ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}

}  // namespace

void ExtraTrust::Free::operator()(x509_st* certificate) const {
  X509_free(certificate);
}

ExtraTrust ExtraTrust::from_environment(uint64_t limit) {
  ExtraTrust trust;
  const char* path = os::environment(kVariable);
  if (path == nullptr || *path == '\0') {
    return trust;
  }
  std::string text;
  try {
    text = read_file(path, limit);
  } catch (const Error& error) {
    fail(
        error.code(),
        fmt::format("[download] {}: {}", kVariable, error.message())
    );
  }
  std::unique_ptr<BIO, BioFree> bio(
      BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))
  );
  ERR_clear_error();
  while (X509* one = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    trust.certificates_.emplace_back(one);
  }
  if (!at_end()) {
    reject(path, "not a well-formed PEM bundle");
  }
  if (trust.empty()) {
    reject(path, "holds no certificate");
  }
  return trust;
}

std::string system_certificates() {
  for (const char* path : kSystemBundles) {
    if (file_exists(path)) {
      return path;
    }
  }
  return "";
}

bool ExtraTrust::add_to(void* ssl_context) const {
  X509_STORE* store =
      SSL_CTX_get_cert_store(static_cast<SSL_CTX*>(ssl_context));
  for (const auto& certificate : certificates_) {
    if (X509_STORE_add_cert(store, certificate.get()) != 1) {
      return false;
    }
  }
  return true;
}

}  // namespace mlxcel::hub
