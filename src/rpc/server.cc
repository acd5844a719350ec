// The controller's side.
#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>

#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "attached_daemons.h"
#include "controller.grpc.pb.h"
#include "rpc.h"
#include "security.h"

namespace tutti::rpc {
namespace {

namespace proto = tutti::controller::v1;
using Json = nlohmann::json;

bool IsLoopback(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  return host.rfind("127.", 0) == 0 || host == "localhost" || host == "[::1]";
}

// As a request of docs/formats/controller.md: the fields that were given.
Json ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  (void)google::protobuf::util::MessageToJsonString(message, &text, options);
  return Json::parse(text, nullptr, false);
}

grpc::Status Answer(controller::Requests& requests, const Json& request,
                    google::protobuf::Message& reply) {
  const std::string answer = requests.Answer(request.dump());
  const Json json = Json::parse(answer, nullptr, false);
  if (json.is_object() && json.contains("error"))
    return {grpc::StatusCode::INVALID_ARGUMENT, json["error"].get<std::string>()};
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto parsed = google::protobuf::util::JsonStringToMessage(answer, &reply, options);
  if (!parsed.ok()) return {grpc::StatusCode::INTERNAL, std::string(parsed.message())};
  return grpc::Status::OK;
}

}  // namespace

class RpcServer::Service final : public proto::Controller::Service {
 public:
  Service(controller::Requests& requests, AttachedDaemons::State& daemons)
      : requests_(requests), daemons_(daemons) {}

  grpc::Status Attach(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<proto::ToDaemon, proto::FromDaemon>* stream) override {
    proto::FromDaemon message;
    if (!stream->Read(&message)) return grpc::Status::OK;
    const std::string host = message.host();
    if (host.empty()) return {grpc::StatusCode::INVALID_ARGUMENT, "which host?"};
    // Questions come from several threads, and none after this function has returned.
    auto writing = std::make_shared<Writing>();
    writing->stream = stream;
    const uint64_t attachment =
        daemons_.Attach(host, [writing](uint64_t question, const std::string& request) {
          const std::lock_guard lock(writing->mutex);
          if (writing->stream == nullptr) return false;
          proto::ToDaemon to_daemon;
          to_daemon.set_question(question);
          to_daemon.set_request(request);
          return writing->stream->Write(to_daemon);
        });
    while (stream->Read(&message))
      daemons_.Answer(attachment, message.question(),
                      message.failure().empty()
                          ? Result<std::string>(message.answer())
                          : MakeError(ErrorCode::kPeerFailed, message.failure()));
    {
      const std::lock_guard lock(writing->mutex);
      writing->stream = nullptr;
    }
    daemons_.Detach(host, attachment);
    return grpc::Status::OK;
  }

  grpc::Status Show(grpc::ServerContext*, const proto::ShowRequest*,
                    proto::ClusterState* reply) override {
    // A rank that was not seen has no name.
    Json shown = Json::parse(requests_.Answer(R"({"command": "show"})"), nullptr, false);
    if (!shown.is_object()) return {grpc::StatusCode::INTERNAL, "no answer"};
    reply->set_policy(shown.value("policy", ""));
    for (const Json& host : shown.value("hosts", Json::array())) {
      proto::Host* to = reply->add_hosts();
      to->set_host(host.value("host", ""));
      to->set_address(host.value("address", ""));
      to->set_error(host.value("error", ""));
    }
    for (const Json& communicator : shown.value("communicators", Json::array())) {
      proto::Communicator* to = reply->add_communicators();
      to->set_communicator(communicator.value("communicator", ""));
      to->set_tenant(communicator.value("tenant", ""));
      to->set_state(communicator.value("state", ""));
      to->set_strategy(communicator.value("strategy", ""));
      to->set_epoch(communicator.value("epoch", 0u));
      for (const Json& rank : communicator.value("ranks", Json::array()))
        to->add_ranks(rank.is_string() ? rank.get<std::string>() : "");
    }
    return grpc::Status::OK;
  }
  grpc::Status Apply(grpc::ServerContext*, const proto::ApplyRequest* request,
                     proto::Decision* reply) override {
    Json json = ToJson(*request);
    json["command"] = "apply";
    return Answer(requests_, json, *reply);
  }
  grpc::Status Install(grpc::ServerContext*, const proto::InstallRequest* request,
                       proto::Installed* reply) override {
    Json json{{"command", "install"}, {"communicator", request->communicator()}};
    json["rings"] = Json::array();
    for (const proto::Ring& ring : request->rings())
      json["rings"].push_back(std::vector<int32_t>(ring.ranks().begin(), ring.ranks().end()));
    if (request->has_route()) json["route"] = request->route();
    json["routes"] = Json::array();
    for (const proto::FlowRoute& flow : request->routes())
      json["routes"].push_back({{"from", flow.from()},
                                {"to", flow.to()},
                                {"channel", flow.channel()},
                                {"route", flow.route()}});
    return Answer(requests_, json, *reply);
  }
  grpc::Status Explain(grpc::ServerContext*, const proto::ExplainRequest* request,
                       proto::Explanation* reply) override {
    return Answer(requests_, {{"command", "explain"}, {"communicator", request->communicator()}},
                  *reply);
  }

 private:
  struct Writing {
    std::mutex mutex;
    grpc::ServerReaderWriter<proto::ToDaemon, proto::FromDaemon>* stream = nullptr;
  };

  controller::Requests& requests_;
  AttachedDaemons::State& daemons_;
};

struct RpcServer::Parts {
  std::unique_ptr<Service> service;
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

RpcServer::RpcServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
RpcServer::RpcServer(RpcServer&&) noexcept = default;
RpcServer& RpcServer::operator=(RpcServer&&) noexcept = default;

RpcServer::~RpcServer() {
  // Daemons stay attached for ever: their streams are cut.
  if (parts_ != nullptr && parts_->server != nullptr)
    parts_->server->Shutdown(std::chrono::system_clock::now());
}

int RpcServer::port() const { return parts_->port; }

Result<RpcServer> RpcServer::Start(const std::string& address, const RpcSecurity& security,
                                   controller::Requests& requests, AttachedDaemons& daemons) {
  if (!security.has_tls() && !security.insecure && !IsLoopback(address))
    return InvalidArgument(fmt::format(
        "{} can be reached by others: give files of TLS, or say that the network is trusted",
        address));
  const auto credentials = ServerCredentialsOf(security);
  if (!credentials) return tl::unexpected(credentials.error());
  auto parts = std::make_unique<Parts>();
  parts->service = std::make_unique<Service>(requests, daemons.state());
  constexpr int kMaxMessageBytes = 256 << 20;  // a strategy of many ranks
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, *credentials, &parts->port);
  builder.RegisterService(parts->service.get());
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  parts->server = builder.BuildAndStart();
  if (parts->server == nullptr || parts->port == 0)
    return MakeError(ErrorCode::kIo, fmt::format("cannot listen at {}", address));
  return RpcServer(std::move(parts));
}

}  // namespace tutti::rpc
