// The daemon's side.
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "controller.grpc.pb.h"
#include "rpc.h"
#include "security.h"
#include "tutti/service/daemon.h"

namespace tutti::rpc {

namespace proto = tutti::controller::v1;

struct DaemonAgent::Parts {
  std::unique_ptr<proto::Controller::Stub> controller;
  std::string host, admin;
  std::mutex mutex;
  std::condition_variable stopped;
  bool stops = false;
  grpc::ClientContext* context = nullptr;  // of the attachment that lasts
  std::thread thread;

  void Run();
  void StayAttached();
};

void DaemonAgent::Parts::StayAttached() {
  grpc::ClientContext attachment;
  // A call that fails at once leaves the making of the connection to the library's poller, which looks every five seconds, and a
  // connection with TLS needs three looks.
  attachment.set_wait_for_ready(true);
  {
    const std::lock_guard lock(mutex);
    if (stops) return;
    context = &attachment;
  }
  const auto stream = controller->Attach(&attachment);
  proto::FromDaemon message;
  message.set_host(host);
  bool lasts = stream->Write(message);
  for (proto::ToDaemon question; lasts && stream->Read(&question);) {
    const Result<std::string> answer = service::AskDaemon(admin, question.request());
    proto::FromDaemon reply;
    reply.set_question(question.question());
    if (answer)
      reply.set_answer(*answer);
    else
      reply.set_failure(answer.error().message);
    lasts = stream->Write(reply);
  }
  attachment.TryCancel();
  (void)stream->Finish();
  const std::lock_guard lock(mutex);
  context = nullptr;
}

void DaemonAgent::Parts::Run() {
  constexpr std::chrono::seconds kPause{1};
  for (bool goes_on = true; goes_on;) {
    StayAttached();
    std::unique_lock lock(mutex);
    stopped.wait_for(lock, kPause, [this] { return stops; });
    goes_on = !stops;
  }
}

DaemonAgent::DaemonAgent(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
DaemonAgent::DaemonAgent(DaemonAgent&&) noexcept = default;
DaemonAgent& DaemonAgent::operator=(DaemonAgent&&) noexcept = default;

DaemonAgent::~DaemonAgent() {
  if (parts_ == nullptr) return;
  {
    const std::lock_guard lock(parts_->mutex);
    parts_->stops = true;
    if (parts_->context != nullptr) parts_->context->TryCancel();
  }
  parts_->stopped.notify_all();
  parts_->thread.join();
}

Result<DaemonAgent> DaemonAgent::Start(const std::string& address, const RpcSecurity& security,
                                       const std::string& host, const std::string& admin) {
  const auto credentials = ChannelCredentialsOf(security);
  if (!credentials) return tl::unexpected(credentials.error());
  constexpr int kMaxMessageBytes = 256 << 20, kMaxPauseMs = 1000;
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxPauseMs);
  auto parts = std::make_unique<Parts>();
  parts->controller =
      proto::Controller::NewStub(grpc::CreateCustomChannel(address, *credentials, arguments));
  parts->host = host;
  parts->admin = admin;
  Parts& running = *parts;
  parts->thread = std::thread([&running] { running.Run(); });
  return DaemonAgent(std::move(parts));
}

}  // namespace tutti::rpc
