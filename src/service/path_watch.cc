#include "path_watch.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace tutti::service {

void PathWatch::Add(int32_t from, const LostWay& way, int64_t now_ns) {
  ++total_;
  suspects_[way.ports] = now_ns;
  const auto same = std::find_if(lost_.begin(), lost_.end(), [&](const Lost& lost) {
    return lost.from == from && lost.way.peer == way.peer && lost.way.channel == way.channel &&
           lost.way.ports.first == way.ports.first && lost.way.address == way.address;
  });
  if (same != lost_.end()) {
    same->way = way;
    same->since_ns = now_ns;
    return;
  }
  lost_.push_back({.from = from, .way = way, .since_ns = now_ns, .is_cut = false});
  probes_.push_back({.under_way = {}, .begun_ns = 0, .next_ns = now_ns, .port = 0});
}

bool PathWatch::HearAny(Probes& probes) {
  std::vector<ipc::Descriptor> silent;
  for (ipc::Descriptor& probe : probes.under_way) {
    pollfd ready{.fd = probe.fd(), .events = POLLOUT, .revents = 0};
    if (poll(&ready, 1, 0) > 0) {
      int error = 0;
      socklen_t size = sizeof(error);
      getsockopt(probe.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error == 0 || error == ECONNREFUSED || error == ECONNRESET) return true;
    } else {
      silent.push_back(std::move(probe));
    }
  }
  probes.under_way = std::move(silent);
  return false;
}

bool PathWatch::Send(const LostWay& way, Probes& probes) {
  ipc::Descriptor probe(TcpSocket(way.to, SOCK_NONBLOCK));
  if (!probe.is_open()) return false;
  const int on = 1;
  setsockopt(probe.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const linger at_once{.l_onoff = 1, .l_linger = 0};  // its port is free again
  setsockopt(probe.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  // From the last one down: connections take the first ones.
  const auto port = static_cast<uint16_t>(way.ports.first + (way.ports.count - 1 - probes.port));
  probes.port = static_cast<uint16_t>((probes.port + 1) % way.ports.count);
  if (BindTo(probe.fd(), {way.address, port}) != 0) return false;
  if (ConnectTo(probe.fd(), way.to) == 0) return true;
  const int why = errno;
  if (why == EINPROGRESS) probes.under_way.push_back(std::move(probe));
  return why == ECONNREFUSED;
}

bool PathWatch::Look(Lost& lost, Probes& probes, int64_t now_ns) {
  if (HearAny(probes)) return true;
  if (!probes.under_way.empty() && now_ns - probes.begun_ns >= kDecideNs) {
    lost.is_cut = true;
    probes.under_way.clear();
  }
  if (now_ns < probes.next_ns) return false;
  probes.under_way.clear();
  probes.begun_ns = now_ns;
  probes.next_ns = now_ns + kBetweenNs;
  for (size_t tries = 0; tries < 2 * kProbes && probes.under_way.size() < kProbes; ++tries)
    if (Send(lost.way, probes)) return true;
  return false;
}

void PathWatch::Tick(int64_t now_ns) {
  for (size_t i = 0; i < lost_.size();) {
    const bool is_unknown = lost_[i].way.ports.count == 0;
    const bool over =
        is_unknown ? now_ns - lost_[i].since_ns > kUnknownNs : Look(lost_[i], probes_[i], now_ns);
    if (!over) {
      ++i;
      continue;
    }
    lost_.erase(lost_.begin() + static_cast<int64_t>(i));
    probes_.erase(probes_.begin() + static_cast<int64_t>(i));
  }
}

}  // namespace tutti::service
