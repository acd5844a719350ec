// The calls that sockets take.
#include <linux/tcp.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "simulated_kernel.h"

namespace tutti::histories {
namespace {

constexpr int64_t kFirstWaitNs = kSecond;  // for the answer to the first segment

}  // namespace

int SimulatedKernel::Socket(int domain, int type) {
  const int fd = Open(File::Kind::kFresh);
  files_[fd].domain = domain;
  files_[fd].type = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
  return fd;
}

int SimulatedKernel::OpenUnixListener(int type) {
  const int fd = Open(File::Kind::kUnixListener);
  files_[fd].domain = AF_UNIX;
  files_[fd].type = type;
  return fd;
}

SimulatedKernel::File* SimulatedKernel::ListenerAt(int32_t host, uint16_t port, int& fd) {
  for (auto& [number, file] : files_)
    if (file.kind == File::Kind::kListener && file.host == host && file.port == port) {
      fd = number;
      return &file;
    }
  return nullptr;
}

int SimulatedKernel::Bind(int fd, const sockaddr* address) {
  File* file = Find(fd);
  if (file == nullptr) return Fail(EBADF);
  sockaddr_in v4{};
  std::memcpy(&v4, address, sizeof(v4));
  const uint32_t at = ntohl(v4.sin_addr.s_addr);
  if (at != INADDR_ANY && HostOf(at) != host_) return Fail(EADDRNOTAVAIL);
  int other = -1;
  if (ntohs(v4.sin_port) != 0 && ListenerAt(host_, ntohs(v4.sin_port), other) != nullptr)
    return Fail(EADDRINUSE);
  file->address = at;
  file->port = ntohs(v4.sin_port);
  return 0;
}

int SimulatedKernel::Listen(int fd) {
  File* file = Find(fd);
  if (file == nullptr) return Fail(EBADF);
  if (file->port == 0) file->port = next_port_[static_cast<size_t>(host_)]++;
  file->kind = File::Kind::kListener;
  return 0;
}

bool SimulatedKernel::TakePort(uint16_t port, const Wire& wire) {
  const End& to = wire.ends[1];
  for (const auto& weak : wires_) {
    const auto other = weak.lock();
    if (other == nullptr || other.get() == &wire || other->ends[0].state == End::State::kOver)
      continue;
    if (other->ends[0].host == wire.ends[0].host && other->ends[0].port == port &&
        other->ends[0].address == wire.ends[0].address && other->ends[1].address == to.address &&
        other->ends[1].port == to.port)
      return false;
  }
  return true;
}

int SimulatedKernel::Connect(int fd, const sockaddr* address) {
  File* file = Find(fd);
  if (file == nullptr) return Fail(EBADF);
  sockaddr_in v4{};
  std::memcpy(&v4, address, sizeof(v4));
  const int32_t to = HostOf(ntohl(v4.sin_addr.s_addr));
  if (to < 0 || to >= options_.hosts) return Fail(ENETUNREACH);
  if (wires_.size() > 64)
    std::erase_if(wires_, [](const auto& weak) {
      const auto old = weak.lock();
      return old == nullptr ||
             (old->ends[0].state == End::State::kOver && old->ends[1].state == End::State::kOver);
    });
  auto wire = std::make_shared<Wire>();
  wire->id = wires_made_++;
  End& end = wire->ends[0];
  end.host = host_;
  end.address = file->address != INADDR_ANY ? file->address : AddressOf(host_);
  end.fd = fd;
  end.patience_ns = file->patience_ns;
  wire->ends[1].host = to;
  wire->ends[1].address = ntohl(v4.sin_addr.s_addr);
  wire->ends[1].port = ntohs(v4.sin_port);
  wire->ends[1].state = End::State::kOver;  // until the first segment is heard
  if (file->port != 0) {
    if (!TakePort(file->port, *wire)) return Fail(EADDRNOTAVAIL);
    end.port = file->port;
  } else {
    uint16_t& next = next_port_[static_cast<size_t>(host_)];
    do {
      end.port = next++;
      if (next >= kFirstRoutePort) next = 32'768;
    } while (!TakePort(end.port, *wire));
  }
  file->kind = File::Kind::kWire;
  file->wire = wire;
  file->side = 0;
  wires_.push_back(wire);
  end.waits_since_ns = now_ns_;
  SendFirst(wire, kFirstWaitNs);
  return Fail(EINPROGRESS);
}

int SimulatedKernel::Accept(int fd) {
  File* listener = Find(fd);
  if (listener == nullptr) return Fail(EBADF);
  if (listener->waiting.empty()) return Fail(EAGAIN);
  const auto [wire, side] = listener->waiting.front();
  listener->waiting.pop_front();
  const int accepted = Open(File::Kind::kWire);
  File& file = files_[accepted];
  file.wire = wire;
  file.side = side;
  End& end = wire->ends[static_cast<size_t>(side)];
  end.fd = accepted;
  end.is_unaccepted = false;
  end.listener = -1;
  return accepted;
}

int SimulatedKernel::Close(int fd) {
  File* found = Find(fd);
  if (found == nullptr) return Fail(EBADF);
  for (const int epoll : found->watchers) {
    File& watcher = files_.at(epoll);
    watcher.watched.erase(fd);
    watcher.candidates.erase(fd);
  }
  for (const auto& [watched, watch] : found->watched) std::erase(files_.at(watched).watchers, fd);
  const File file = std::move(*found);
  files_.erase(fd);
  for (const auto& [wire, side] : file.waiting) LetGo(wire, side, true);
  if (file.kind == File::Kind::kWire) LetGo(file.wire, file.side, file.at_once);
  return 0;
}

void SimulatedKernel::LetGo(const std::shared_ptr<Wire>& wire, int side, bool rudely) {
  End& end = wire->ends[static_cast<size_t>(side)];
  end.fd = -1;
  end.is_closed = true;
  end.is_unaccepted = false;
  if (end.state == End::State::kOver) return;
  if (end.state == End::State::kConnecting) {
    end.state = End::State::kOver;
    return;
  }
  if (rudely || end.in.size() > end.taken) {
    end.state = End::State::kOver;
    SendReset(wire, side);
    return;
  }
  if (end.ends) return;
  end.ends = true;
  Transmit(wire, side, end.acked + end.out.size(), "", true);
}

int SimulatedKernel::Shutdown(int fd) {
  File* file = Find(fd);
  if (file == nullptr) return Fail(EBADF);
  if (file->kind != File::Kind::kWire) {
    Tell(fd);
    return 0;
  }
  End& end = file->wire->ends[static_cast<size_t>(file->side)];
  if (end.state == End::State::kOpen && !end.ends) {
    end.ends = true;
    Transmit(file->wire, file->side, end.acked + end.out.size(), "", true);
  }
  return 0;
}

ssize_t SimulatedKernel::Send(int fd, const void* bytes, size_t size) {
  File* file = Find(fd);
  if (file == nullptr) return Fail(EBADF);
  if (file->kind != File::Kind::kWire) return Fail(ENOTCONN);
  const std::shared_ptr<Wire> wire = file->wire;
  End& end = wire->ends[static_cast<size_t>(file->side)];
  if (end.error != 0) return Fail(std::exchange(end.error, 0));
  if (end.state == End::State::kConnecting) return Fail(EAGAIN);
  if (end.state == End::State::kOver || end.ends) return Fail(EPIPE);
  const size_t room = options_.send_buffer - std::min(options_.send_buffer, end.out.size());
  const size_t taken = std::min(room, size);
  if (taken == 0) {
    end.was_full = true;
    return Fail(EAGAIN);
  }
  if (taken < size) end.was_full = true;
  std::string part(static_cast<const char*>(bytes), taken);
  if (tamper_) tamper_(part);
  const uint64_t at = end.acked + end.out.size();
  end.out += part;
  if (file->side == 0 && wire->first.size() < kFirstBytes)
    wire->first.append(part, 0, kFirstBytes - wire->first.size());
  Transmit(wire, file->side, at, std::move(part), false);
  return static_cast<ssize_t>(taken);
}

ssize_t SimulatedKernel::Receive(int fd, void* bytes, size_t size) {
  File* file = Find(fd);
  if (file == nullptr) return Fail(EBADF);
  if (file->kind != File::Kind::kWire) return Fail(ENOTCONN);
  End& end = file->wire->ends[static_cast<size_t>(file->side)];
  const size_t taken = std::min(size, end.in.size() - end.taken);
  if (taken > 0) {
    std::memcpy(bytes, end.in.data() + end.taken, taken);
    end.taken += taken;
    if (end.taken == end.in.size()) {
      end.in.clear();
      end.taken = 0;
    }
    return static_cast<ssize_t>(taken);
  }
  if (end.error != 0) return Fail(std::exchange(end.error, 0));
  if (end.has_ended || end.state == End::State::kOver) return 0;
  return Fail(EAGAIN);
}

int SimulatedKernel::GetOption(int fd, int level, int name, void* value, socklen_t* size) {
  File* file = Find(fd);
  if (file == nullptr) return Fail(EBADF);
  End* end = file->kind == File::Kind::kWire ? &file->wire->ends[static_cast<size_t>(file->side)]
                                             : nullptr;
  if (level == IPPROTO_TCP && name == TCP_INFO) {
    if (file->type != SOCK_STREAM || file->domain != AF_INET) return Fail(EOPNOTSUPP);
    tcp_info info{};
    if (end != nullptr) {
      info.tcpi_unacked =
          end->state == End::State::kConnecting ? 1 : static_cast<uint32_t>(end->flight.size());
      info.tcpi_bytes_acked = end->acked;
      info.tcpi_retransmits = static_cast<uint8_t>(std::min<uint32_t>(end->repeats, UINT8_MAX));
      constexpr int64_t kNsAUs = 1'000;
      info.tcpi_rtt = static_cast<uint32_t>((2 * options_.delay_ns + options_.jitter_ns) / kNsAUs);
      info.tcpi_rttvar = static_cast<uint32_t>(options_.jitter_ns / kNsAUs);
    }
    std::memcpy(value, &info, std::min<size_t>(*size, sizeof(info)));
    return 0;
  }
  int answer = 0;
  if (level == SOL_SOCKET && name == SO_ERROR) {
    answer = end != nullptr ? std::exchange(end->error, 0) : ENOTCONN;
    if (file->kind != File::Kind::kWire && file->kind != File::Kind::kFresh) answer = 0;
  } else if (level == SOL_SOCKET && name == SO_DOMAIN) {
    answer = file->domain;
  } else if (level == SOL_SOCKET && name == SO_TYPE) {
    answer = file->type;
  } else if (level == SOL_SOCKET && name == SO_ACCEPTCONN) {
    answer = file->kind == File::Kind::kListener || file->kind == File::Kind::kUnixListener ? 1 : 0;
  }
  std::memcpy(value, &answer, sizeof(answer));
  *size = sizeof(answer);
  return 0;
}

int SimulatedKernel::SetOption(int fd, int level, int name, const void* value) {
  File* file = Find(fd);
  if (file == nullptr) return Fail(EBADF);
  if (level == SOL_SOCKET && name == SO_LINGER) {
    linger how{};
    std::memcpy(&how, value, sizeof(how));
    file->at_once = how.l_onoff != 0 && how.l_linger == 0;
  } else if (level == IPPROTO_TCP && name == TCP_USER_TIMEOUT) {
    unsigned ms = 0;
    std::memcpy(&ms, value, sizeof(ms));
    file->patience_ns = int64_t{ms} * kMs;
    if (file->kind == File::Kind::kWire)
      file->wire->ends[static_cast<size_t>(file->side)].patience_ns = file->patience_ns;
  }
  return 0;
}

int SimulatedKernel::NameOf(int fd, sockaddr* address, socklen_t* size, bool of_peer) const {
  const File* file = Find(fd);
  if (file == nullptr) return Fail(EBADF);
  if (file->domain == AF_UNIX) {
    address->sa_family = AF_UNIX;
    std::memset(address->sa_data, 0, sizeof(address->sa_data));
    *size = sizeof(sa_family_t);
    return 0;
  }
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  if (file->kind == File::Kind::kWire) {
    const Wire& wire = *file->wire;
    const End& own = wire.ends[static_cast<size_t>(file->side)];
    const End& end = wire.ends[static_cast<size_t>(of_peer ? 1 - file->side : file->side)];
    if (of_peer && own.state != End::State::kOpen) return Fail(ENOTCONN);
    v4.sin_addr.s_addr = htonl(end.address);
    v4.sin_port = htons(end.port);
  } else {
    if (of_peer) return Fail(ENOTCONN);
    v4.sin_addr.s_addr = htonl(file->address);
    v4.sin_port = htons(file->port);
  }
  std::memcpy(address, &v4, std::min<size_t>(*size, sizeof(v4)));
  *size = sizeof(v4);
  return 0;
}

}  // namespace tutti::histories
