#include "tls_gateway.h"

#ifdef TUTTI_TLS

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tutti/base/clock.h"
#include "viewer.h"

namespace tutti::service {
namespace {

constexpr int64_t kHandshakeNs = 5'000'000'000;
constexpr size_t kMaxHandshakes = 256, kMaxPending = size_t{256} << 10, kPart = 16384;

struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
using Context = std::unique_ptr<SSL_CTX, FreeContext>;
using TlsSession = std::unique_ptr<SSL, FreeSsl>;

std::string LastReason() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  return reason == nullptr ? "it closed the connection" : reason;
}

tl::unexpected<Error> WrongFile(const char* field, const std::string& path) {
  return InvalidArgument(fmt::format("tls.{}: {}: {}", field, path, LastReason()));
}

Result<Context> MakeContext(const TlsOptions& options) {
  Context context(SSL_CTX_new(TLS_method()));
  if (context == nullptr) return MakeError(ErrorCode::kIo, "tls: " + LastReason());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  if (SSL_CTX_use_certificate_chain_file(context.get(), options.certificate.c_str()) != 1)
    return WrongFile("certificate", options.certificate);
  if (SSL_CTX_use_PrivateKey_file(context.get(), options.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1)
    return WrongFile("key", options.key);
  if (SSL_CTX_load_verify_locations(context.get(), options.authority.c_str(), nullptr) != 1)
    return WrongFile("authority", options.authority);
  return context;
}

void NoDelay(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// Under way, where it does not fail at once.
ipc::Descriptor BeginConnect(const Endpoint& to, const TcpSource& source) {
  ipc::Descriptor made(TcpSocket(to, SOCK_NONBLOCK));
  if (!made.is_open()) return made;
  NoDelay(made.fd());
  const int on = 1;
  setsockopt(made.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const bool is_bound = !source.address.is_any() || source.num_ports > 0;
  const int32_t tries = std::max<int32_t>(1, source.num_ports);
  bool bound = !is_bound;
  for (int32_t i = 0; i < tries && !bound; ++i) {
    const Endpoint from{source.address,
                        static_cast<uint16_t>(source.num_ports > 0 ? source.first_port + i : 0)};
    bound = BindTo(made.fd(), from) == 0;
  }
  if (!bound || (ConnectTo(made.fd(), to) != 0 && errno != EINPROGRESS)) return {};
  return made;
}

// Connecting, connected, or why not.
enum class Reached { kNotYet, kYes, kNo };
Reached IsConnected(int socket) {
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    errno = error;
    return Reached::kNo;
  }
  sockaddr_storage peer{};
  size = sizeof(peer);
  return getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) == 0 ? Reached::kYes
                                                                             : Reached::kNotYet;
}

// A connection: plain on one side, TLS on the other.
struct Pipe {
  ipc::Descriptor plain, secure;
  TlsSession ssl;
  BIO* in = nullptr;   // ciphertext that came; the session's
  BIO* out = nullptr;  // ciphertext to send
  std::string to_plain, to_secure;
  bool is_client = false;
  bool plain_connects = false, secure_connects = false;
  bool established = false;
  bool plain_over = false, secure_over = false, over = false;
  int64_t until_ns = 0;  // of the handshake
  Endpoint remote;       // of the other host
  Endpoint plain_to;     // of a server, once the other side is known
};

class TlsGateway final : public Gateway {
 public:
  TlsGateway(Context context, ipc::Descriptor epoll, ipc::Descriptor wake, TellFault tell)
      : context_(std::move(context)),
        epoll_(std::move(epoll)),
        wake_(std::move(wake)),
        tell_(std::move(tell)) {
    epoll_event event{};
    event.events = EPOLLIN;
    epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, wake_.fd(), &event);
    thread_ = std::thread([this] { Run(); });
  }
  ~TlsGateway() override {
    ends_ = true;
    Wake();
    thread_.join();
  }
  TlsGateway(const TlsGateway&) = delete;
  TlsGateway& operator=(const TlsGateway&) = delete;

  Result<Endpoint> Front(const Endpoint& at, const Endpoint& to) override {
    return Add(at, {.is_front = true, .to = to});
  }
  Result<Endpoint> Through(const Endpoint& to, const TcpSource& source) override {
    return Add({INADDR_LOOPBACK, 0}, {.is_front = false, .to = to, .source = source});
  }
  void Close(const Endpoint& made) override {
    {
      const std::lock_guard lock(mutex_);
      closed_.push_back(made);
    }
    Wake();
  }
  std::string FaultWith(const Endpoint& to) const override {
    const std::lock_guard lock(mutex_);
    const auto found = faults_.find(to.ToText());
    return found == faults_.end() ? "" : found->second;
  }

 private:
  struct Door {
    bool is_front = false;
    Endpoint to;
    TcpSource source = {};
    Endpoint at = {};
    ipc::Descriptor listener = {};
  };

  void Wake() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t rung = write(wake_.fd(), &one, sizeof(one));
  }

  Result<Endpoint> Add(Endpoint at, Door door) {
    const Endpoint wanted = at;
    door.listener = ipc::Descriptor(ListenAt(at));
    if (!door.listener.is_open())
      return MakeError(ErrorCode::kIo, fmt::format("cannot listen at {}: {}", wanted.ToText(),
                                                   std::strerror(errno)));
    door.at = at;
    {
      const std::lock_guard lock(mutex_);
      added_.push_back(std::move(door));
    }
    Wake();
    return at;
  }

  void Run() {
    while (!ends_) {
      std::array<epoll_event, 64> events;
      // Listeners that could not take who came, and handshakes that take too long, are looked at now and then.
      constexpr int kLookMs = 100;
      const int count = epoll_wait(epoll_.fd(), events.data(), static_cast<int>(events.size()),
                                   pipes_.empty() && doors_.empty() ? -1 : kLookMs);
      uint64_t rung = 0;
      [[maybe_unused]] const ssize_t size = read(wake_.fd(), &rung, sizeof(rung));
      TakeRequests();
      for (int i = 0; i < count; ++i)
        if (auto* pipe = static_cast<Pipe*>(events[static_cast<size_t>(i)].data.ptr);
            pipe != nullptr && !pipe->over)
          Pump(*pipe);
      for (Door& door : doors_) Accept(door);
      EndOld(NowNs());
    }
  }

  void TakeRequests() {
    std::vector<Door> added;
    std::vector<Endpoint> closed;
    {
      const std::lock_guard lock(mutex_);
      added.swap(added_);
      closed.swap(closed_);
    }
    for (Door& door : added) {
      epoll_event event{};
      event.events = EPOLLIN | EPOLLET;  // data: null; all are tried each time
      epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, door.listener.fd(), &event);
      doors_.push_back(std::move(door));
    }
    for (const Endpoint& at : closed)
      doors_.remove_if([&at](const Door& door) { return door.at == at; });
  }

  void Accept(Door& door) {
    while (true) {
      ipc::Descriptor came(
          accept4(door.listener.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!came.is_open()) return;
      NoDelay(came.fd());
      const size_t under_way = static_cast<size_t>(std::count_if(
          pipes_.begin(), pipes_.end(), [](const Pipe& pipe) { return !pipe.established; }));
      if (under_way >= kMaxHandshakes) continue;
      if (door.is_front) {
        const Endpoint from = RemoteEndOf(came.fd());
        Begin(std::move(came), {}, door, from);
        continue;
      }
      // Others of this host have no business here.
      if (WhoCalls(came.fd()).user != geteuid()) continue;
      ipc::Descriptor secure = BeginConnect(door.to, door.source);
      if (!secure.is_open()) {
        Note(door.to, fmt::format("could not be reached: {}", std::strerror(errno)));
        continue;
      }
      Begin(std::move(secure), std::move(came), door, door.to);
    }
  }

  void Begin(ipc::Descriptor secure, ipc::Descriptor plain, const Door& door,
             const Endpoint& remote) {
    Pipe& pipe = pipes_.emplace_back();
    pipe.is_client = !door.is_front;
    pipe.secure = std::move(secure);
    pipe.plain = std::move(plain);
    pipe.secure_connects = pipe.is_client;
    pipe.remote = remote;
    pipe.plain_to = door.to;
    pipe.until_ns = NowNs() + kHandshakeNs;
    pipe.ssl.reset(SSL_new(context_.get()));
    pipe.in = BIO_new(BIO_s_mem());
    pipe.out = BIO_new(BIO_s_mem());
    if (pipe.ssl == nullptr || pipe.in == nullptr || pipe.out == nullptr) {
      BIO_free(pipe.in);
      BIO_free(pipe.out);
      return End(pipe);
    }
    SSL_set_bio(pipe.ssl.get(), pipe.in, pipe.out);  // which has them now
    if (pipe.is_client)
      SSL_set_connect_state(pipe.ssl.get());
    else
      SSL_set_accept_state(pipe.ssl.get());
    Register(pipe, pipe.secure.fd());
    if (pipe.plain.is_open()) Register(pipe, pipe.plain.fd());
    Pump(pipe);
  }

  void Register(Pipe& pipe, int socket) const {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    event.data.ptr = &pipe;
    epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, socket, &event);
  }

  void Note(const Endpoint& remote, const std::string& fault) {
    {
      const std::lock_guard lock(mutex_);
      constexpr size_t kMost = 1024;
      if (faults_.size() >= kMost) faults_.clear();
      faults_[remote.ToText()] = fault;
    }
    if (tell_) tell_(fmt::format("TLS with {}: {}", remote.ToText(), fault));
  }

  void FailSession(Pipe& pipe) {
    const long verified = SSL_get_verify_result(pipe.ssl.get());
    const std::string reason = LastReason();
    if (verified != X509_V_OK)
      Note(pipe.remote,
           fmt::format("its certificate is refused: {}", X509_verify_cert_error_string(verified)));
    else if (reason.find("alert") != std::string::npos)
      Note(pipe.remote, "it refuses the certificate of this host: " + reason);
    else
      Note(pipe.remote, reason);
    // What it is told of the reason.
    Drain(pipe);
    Flush(pipe.secure, pipe.to_secure);
    End(pipe);
  }

  void End(Pipe& pipe) {
    pipe.over = true;
    pipe.plain = {};
    pipe.secure = {};
  }

  void EndOld(int64_t now_ns) {
    for (Pipe& pipe : pipes_)
      if (!pipe.over && !pipe.established && now_ns > pipe.until_ns) {
        if (pipe.is_client) Note(pipe.remote, "no handshake within 5 s");
        End(pipe);
      }
    pipes_.remove_if([](const Pipe& pipe) { return pipe.over; });
  }

  // False: the other end of it has gone.
  static bool Flush(const ipc::Descriptor& socket, std::string& bytes) {
    size_t done = 0;
    bool is_there = true;
    while (done < bytes.size()) {
      const ssize_t sent =
          send(socket.fd(), bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) {
        done += static_cast<size_t>(sent);
        continue;
      }
      is_there = sent < 0 && WouldBlock();
      break;
    }
    bytes.erase(0, done);
    return is_there;
  }

  static void Drain(Pipe& pipe) {
    std::array<char, kPart> part;
    for (int size = 0; (size = BIO_read(pipe.out, part.data(), static_cast<int>(part.size()))) > 0;)
      pipe.to_secure.append(part.data(), static_cast<size_t>(size));
  }

  // Bytes that came on a socket. 0: none now; it may be over.
  static size_t Take(const ipc::Descriptor& socket, std::array<char, kPart>& part, bool& over) {
    const ssize_t size = recv(socket.fd(), part.data(), part.size(), MSG_DONTWAIT);
    if (size > 0) return static_cast<size_t>(size);
    if (size == 0 || !WouldBlock()) over = true;
    return 0;
  }

  // Both ends reached? False: not yet, or it is over.
  bool Reach(Pipe& pipe) {
    for (const auto& [connects, socket] : {std::pair(&pipe.secure_connects, &pipe.secure),
                                           std::pair(&pipe.plain_connects, &pipe.plain)}) {
      if (!*connects) continue;
      switch (IsConnected(socket->fd())) {
        case Reached::kNotYet:
          return false;
        case Reached::kNo:
          Note(pipe.remote, fmt::format("could not be reached: {}", std::strerror(errno)));
          End(pipe);
          return false;
        case Reached::kYes:
          *connects = false;
      }
    }
    return true;
  }

  bool Shake(Pipe& pipe) {
    ERR_clear_error();
    const int done = SSL_do_handshake(pipe.ssl.get());
    if (done == 1) {
      pipe.established = true;
      if (!pipe.is_client) {
        pipe.plain = BeginConnect(pipe.plain_to, {});
        if (!pipe.plain.is_open()) {
          End(pipe);
          return false;
        }
        pipe.plain_connects = true;
        Register(pipe, pipe.plain.fd());
      }
      return true;
    }
    const int error = SSL_get_error(pipe.ssl.get(), done);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) FailSession(pipe);
    return false;
  }

  bool Decrypt(Pipe& pipe, std::array<char, kPart>& part) {
    ERR_clear_error();
    const int size = SSL_read(pipe.ssl.get(), part.data(), static_cast<int>(part.size()));
    if (size > 0) {
      pipe.to_plain.append(part.data(), static_cast<size_t>(size));
      return true;
    }
    const int error = SSL_get_error(pipe.ssl.get(), size);
    if (error == SSL_ERROR_ZERO_RETURN)
      pipe.secure_over = true;
    else if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
      FailSession(pipe);
    return false;
  }

  void Pump(Pipe& pipe) {
    std::array<char, kPart> part;
    for (bool moved = true; moved && !pipe.over;) {
      moved = false;
      if (!Reach(pipe)) {
        // A server's plain side may still connect while the other side sends.
        if (pipe.over || pipe.secure_connects) return;
      }
      if (!pipe.secure_over && pipe.to_plain.size() < kMaxPending)
        if (const size_t size = Take(pipe.secure, part, pipe.secure_over); size > 0) {
          BIO_write(pipe.in, part.data(), static_cast<int>(size));
          moved = true;
        }
      if (!pipe.established && Shake(pipe)) moved = true;
      if (pipe.over) return;
      if (pipe.established && pipe.to_plain.size() < kMaxPending && Decrypt(pipe, part))
        moved = true;
      if (pipe.over) return;
      const bool takes_plain = pipe.established && pipe.plain.is_open() && !pipe.plain_connects &&
                               !pipe.plain_over && pipe.to_secure.size() < kMaxPending;
      if (takes_plain) {
        if (const size_t size = Take(pipe.plain, part, pipe.plain_over); size > 0) {
          SSL_write(pipe.ssl.get(), part.data(), static_cast<int>(size));
          moved = true;
        } else if (pipe.plain_over) {
          SSL_shutdown(pipe.ssl.get());
        }
      }
      Drain(pipe);
      if (!Flush(pipe.secure, pipe.to_secure)) pipe.secure_over = true;
      if (pipe.plain.is_open() && !pipe.plain_connects && !Flush(pipe.plain, pipe.to_plain))
        pipe.plain_over = true;
    }
    if (pipe.over) return;
    if (pipe.secure_over && !pipe.established) return FailSession(pipe);
    const bool all_told = pipe.plain_over && (pipe.to_secure.empty() || pipe.secure_over);
    const bool all_heard = pipe.secure_over && (pipe.to_plain.empty() || pipe.plain_over);
    if (all_told || all_heard) End(pipe);
  }

  Context context_;
  ipc::Descriptor epoll_, wake_;
  TellFault tell_;
  std::atomic<bool> ends_ = false;
  mutable std::mutex mutex_;
  std::vector<Door> added_;                    // guarded by mutex_
  std::vector<Endpoint> closed_;               // guarded by mutex_
  std::map<std::string, std::string> faults_;  // guarded by mutex_; by the other's endpoint
  std::list<Door> doors_;                      // of the thread
  std::list<Pipe> pipes_;                      // of the thread
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Gateway>> StartTlsGateway(const TlsOptions& options, TellFault tell) {
  Result<Context> context = MakeContext(options);
  if (!context) return tl::unexpected(context.error());
  ipc::Descriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  ipc::Descriptor wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!epoll.is_open() || !wake.is_open())
    return MakeError(ErrorCode::kIo, fmt::format("tls: {}", std::strerror(errno)));
  return std::make_unique<TlsGateway>(std::move(*context), std::move(epoll), std::move(wake),
                                      std::move(tell));
}

}  // namespace tutti::service

#else

namespace tutti::service {

Result<std::unique_ptr<Gateway>> StartTlsGateway(const TlsOptions&, TellFault) {
  return MakeError(ErrorCode::kInfeasible, "tls: this build has none (-DTUTTI_TLS=ON)");
}

}  // namespace tutti::service

#endif
