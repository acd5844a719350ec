// Credentials of both sides from the files that RpcSecurity names.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "rpc.h"

namespace tutti::rpc {

Result<std::shared_ptr<grpc::ServerCredentials>> ServerCredentialsOf(const RpcSecurity& security);
Result<std::shared_ptr<grpc::ChannelCredentials>> ChannelCredentialsOf(const RpcSecurity& security);

}  // namespace tutti::rpc
