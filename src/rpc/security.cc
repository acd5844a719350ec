#include "security.h"

#include <utility>

#include "tutti/base/file.h"

namespace tutti::rpc {
namespace {

struct Texts {
  std::string certificate, key, authority;
};

Result<Texts> Read(const RpcSecurity& security) {
  if (security.key.empty() || security.authority.empty())
    return InvalidArgument("TLS needs three files: certificate, key and authority");
  Texts texts;
  for (const auto& [path, text] :
       {std::pair(&security.certificate, &texts.certificate), std::pair(&security.key, &texts.key),
        std::pair(&security.authority, &texts.authority)}) {
    Result<std::string> read = ReadFile(*path);
    if (!read) return tl::unexpected(read.error());
    *text = std::move(*read);
  }
  return texts;
}

}  // namespace

Result<std::shared_ptr<grpc::ServerCredentials>> ServerCredentialsOf(const RpcSecurity& security) {
  if (!security.has_tls()) return grpc::InsecureServerCredentials();
  const Result<Texts> texts = Read(security);
  if (!texts) return tl::unexpected(texts.error());
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = texts->authority;
  options.pem_key_cert_pairs.push_back({texts->key, texts->certificate});
  return grpc::SslServerCredentials(options);
}

Result<std::shared_ptr<grpc::ChannelCredentials>> ChannelCredentialsOf(
    const RpcSecurity& security) {
  if (!security.has_tls()) return grpc::InsecureChannelCredentials();
  const Result<Texts> texts = Read(security);
  if (!texts) return tl::unexpected(texts.error());
  return grpc::SslCredentials({texts->authority, texts->key, texts->certificate});
}

}  // namespace tutti::rpc
