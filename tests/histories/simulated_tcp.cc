// Segments on their way: what is lost, when they arrive, what is acknowledged and sent again.
#include <algorithm>
#include <cerrno>

#include "simulated_kernel.h"

namespace tutti::histories {
namespace {

constexpr int64_t kResendNs = 200 * kMs, kMostResendNs = 120 * kSecond;
constexpr int64_t kGiveUpNs = 127 * kSecond;  // of a connection that nobody answers
constexpr int64_t kOrphanNs = 60 * kSecond;   // of one that its process has closed
constexpr int64_t kLateAckNs = 40 * kMs;

}  // namespace

int32_t SimulatedKernel::RouteOf(const End& from, const End& to) const {
  const auto routes = static_cast<uint32_t>(options_.routes);
  const auto last = kFirstRoutePort + kPortsARoute * routes;
  if (from.port >= kFirstRoutePort && from.port < last)
    return (from.port - kFirstRoutePort) / kPortsARoute;
  constexpr uint32_t kSpread = 2'654'435'761u;
  const uint32_t mixed = (uint32_t{from.port} << 16 | to.port) * kSpread;
  return static_cast<int32_t>((mixed >> 16) % routes);
}

bool SimulatedKernel::IsLost(const Wire& wire, int from) {
  ++segments_;
  const End& sender = wire.ends[static_cast<size_t>(from)];
  const End& receiver = wire.ends[static_cast<size_t>(1 - from)];
  if (down_[static_cast<size_t>(sender.host)] || down_[static_cast<size_t>(receiver.host)])
    return true;
  if (sender.host != receiver.host &&
      cuts_.count({sender.host, receiver.host, RouteOf(sender, receiver)}) > 0)
    return true;
  constexpr uint64_t kMillion = 1'000'000;
  return sender.host != receiver.host && options_.lost_of_million > 0 &&
         random_.Below(kMillion) < options_.lost_of_million;
}

int64_t SimulatedKernel::Arrival(End& to) {
  const auto jitter =
      static_cast<int64_t>(random_.Below(static_cast<uint64_t>(options_.jitter_ns) + 1));
  to.next_arrival_ns = std::max(to.next_arrival_ns + 1, now_ns_ + options_.delay_ns + jitter);
  return to.next_arrival_ns;
}

void SimulatedKernel::EndWith(End& end, int error) {
  if (end.state == End::State::kOver) return;
  end.state = End::State::kOver;
  end.error = error;
  ++end.timer;
  if (end.fd >= 0) Tell(end.fd);
}

void SimulatedKernel::SendFirst(const std::shared_ptr<Wire>& wire, int64_t wait_ns) {
  if (!IsLost(*wire, 0)) At(Arrival(wire->ends[1]), [this, wire] { HearFirst(wire); });
  At(now_ns_ + wait_ns, [this, wire, wait_ns] {
    End& end = wire->ends[0];
    if (end.state != End::State::kConnecting) return;
    const int64_t patience = end.patience_ns > 0 ? end.patience_ns : kGiveUpNs;
    if (now_ns_ - end.waits_since_ns >= patience) return EndWith(end, ETIMEDOUT);
    SendFirst(wire, 2 * wait_ns);
  });
}

void SimulatedKernel::HearFirst(const std::shared_ptr<Wire>& wire) {
  End& dialer = wire->ends[0];
  End& end = wire->ends[1];
  if (dialer.state != End::State::kConnecting) return;
  if (end.state == End::State::kOpen) return AnswerFirst(wire);
  int listener = -1;
  if (ListenerAt(end.host, end.port, listener) == nullptr) {
    if (!IsLost(*wire, 1))
      At(Arrival(dialer), [this, wire] {
        if (wire->ends[0].state == End::State::kConnecting) EndWith(wire->ends[0], ECONNREFUSED);
      });
    return;
  }
  end.state = End::State::kOpen;
  end.is_unaccepted = true;
  end.listener = listener;
  AnswerFirst(wire);
}

void SimulatedKernel::AnswerFirst(const std::shared_ptr<Wire>& wire) {
  if (IsLost(*wire, 1)) return;
  At(Arrival(wire->ends[0]), [this, wire] {
    End& end = wire->ends[0];
    if (end.state == End::State::kConnecting) {
      end.state = End::State::kOpen;
      if (end.fd >= 0) Tell(end.fd);
      if (!IsLost(*wire, 0)) At(Arrival(wire->ends[1]), [this, wire] { BecomeAcceptable(wire); });
    } else if (end.state == End::State::kOver) {
      SendReset(wire, 0);
    }
  });
}

void SimulatedKernel::BecomeAcceptable(const std::shared_ptr<Wire>& wire) {
  End& end = wire->ends[1];
  if (!end.is_unaccepted || end.listener < 0) return;
  File* listener = Find(std::exchange(end.listener, -1));
  if (listener == nullptr || listener->kind != File::Kind::kListener) {
    LetGo(wire, 1, true);
    return;
  }
  listener->waiting.emplace_back(wire, 1);
  for (auto& [fd, file] : files_)
    if (&file == listener) {
      Tell(fd);
      break;
    }
}

void SimulatedKernel::Transmit(const std::shared_ptr<Wire>& wire, int from, uint64_t at,
                               std::string bytes, bool ends) {
  End& end = wire->ends[static_cast<size_t>(from)];
  const uint64_t last = at + bytes.size() + (ends ? 1 : 0);
  if (end.flight.empty()) {
    end.waits_since_ns = now_ns_;
    end.resend_ns = kResendNs;
    SetTimer(wire, from);
  }
  if (end.flight.empty() || end.flight.back() < last) end.flight.push_back(last);
  if (IsLost(*wire, from)) return;
  End& other = wire->ends[static_cast<size_t>(1 - from)];
  At(Arrival(other), [this, wire, to = 1 - from, at, bytes = std::move(bytes), ends] {
    Arrive(wire, to, at, bytes, ends);
  });
}

void SimulatedKernel::Arrive(const std::shared_ptr<Wire>& wire, int to, uint64_t at,
                             const std::string& bytes, bool ends) {
  End& end = wire->ends[static_cast<size_t>(to)];
  if (end.state == End::State::kOver) {
    if (!down_[static_cast<size_t>(end.host)]) SendReset(wire, to);
    return;
  }
  if (to == 1) BecomeAcceptable(wire);
  if (at <= end.received && !end.has_ended) {
    const uint64_t known = end.received - at;
    if (known < bytes.size()) {
      if (end.is_closed) {
        end.state = End::State::kOver;
        SendReset(wire, to);
        return;
      }
      end.in.append(bytes, static_cast<size_t>(known));
      end.received = at + bytes.size();
      if (end.fd >= 0) Tell(end.fd);
    }
    if (ends && end.received == at + bytes.size()) {
      end.has_ended = true;
      ++end.received;
      if (end.is_closed && end.end_acked) end.state = End::State::kOver;
      if (end.fd >= 0) Tell(end.fd);
    }
  }
  // As kernels do, not for one segment alone perhaps.
  if (end.ack_under_way && !std::exchange(end.ack_is_late, false)) return;
  constexpr uint64_t kHundred = 100;
  const bool late = !end.ack_under_way && random_.Below(kHundred) < options_.late_acks_of_hundred;
  end.ack_under_way = true;
  end.ack_is_late = late;
  const int64_t wait =
      late ? static_cast<int64_t>(random_.Below(static_cast<uint64_t>(kLateAckNs))) : 0;
  At(now_ns_ + wait, [this, wire, to] { Acknowledge(wire, to); });
}

void SimulatedKernel::Acknowledge(const std::shared_ptr<Wire>& wire, int from) {
  End& end = wire->ends[static_cast<size_t>(from)];
  end.ack_under_way = end.ack_is_late = false;
  if (end.state == End::State::kOver || IsLost(*wire, from)) return;
  At(Arrival(wire->ends[static_cast<size_t>(1 - from)]),
     [this, wire, to = 1 - from, up_to = end.received] { HearAck(wire, to, up_to); });
}

void SimulatedKernel::HearAck(const std::shared_ptr<Wire>& wire, int to, uint64_t up_to) {
  End& end = wire->ends[static_cast<size_t>(to)];
  if (end.state == End::State::kOver) return;
  const uint64_t known = end.acked + (end.end_acked ? 1 : 0);
  if (up_to <= known) return;
  const uint64_t bytes = std::min<uint64_t>(up_to - end.acked, end.out.size());
  end.out.erase(0, static_cast<size_t>(bytes));
  end.acked += bytes;
  if (up_to > end.acked) end.end_acked = true;
  while (!end.flight.empty() && end.flight.front() <= up_to) end.flight.pop_front();
  end.repeats = 0;
  end.resend_ns = kResendNs;
  end.waits_since_ns = now_ns_;
  SetTimer(wire, to);
  if (end.end_acked && end.is_closed && end.has_ended) end.state = End::State::kOver;
  if (end.was_full && end.out.size() < options_.send_buffer) {
    end.was_full = false;
    if (end.fd >= 0) Tell(end.fd);
  }
}

void SimulatedKernel::SetTimer(const std::shared_ptr<Wire>& wire, int from) {
  End& end = wire->ends[static_cast<size_t>(from)];
  const uint64_t number = ++end.timer;
  if (end.flight.empty() && end.out.empty() && !(end.ends && !end.end_acked)) return;
  int64_t wait = end.resend_ns;
  if (end.patience_ns > 0)
    wait = std::clamp(end.waits_since_ns + end.patience_ns - now_ns_, int64_t{1}, wait);
  At(now_ns_ + wait, [this, wire, from, number] {
    if (wire->ends[static_cast<size_t>(from)].timer == number) Resend(wire, from);
  });
}

void SimulatedKernel::Resend(const std::shared_ptr<Wire>& wire, int from) {
  End& end = wire->ends[static_cast<size_t>(from)];
  if (end.state == End::State::kOver) return;
  const int64_t waits = now_ns_ - end.waits_since_ns;
  if ((end.patience_ns > 0 && waits >= end.patience_ns) || (end.is_closed && waits >= kOrphanNs))
    return EndWith(end, ETIMEDOUT);
  ++end.repeats;
  end.resend_ns = std::min(2 * end.resend_ns, kMostResendNs);
  Transmit(wire, from, end.acked, end.out, end.ends);
  SetTimer(wire, from);
}

void SimulatedKernel::SendReset(const std::shared_ptr<Wire>& wire, int from) {
  if (IsLost(*wire, from)) return;
  At(Arrival(wire->ends[static_cast<size_t>(1 - from)]), [this, wire, to = 1 - from] {
    End& end = wire->ends[static_cast<size_t>(to)];
    EndWith(end, end.state == End::State::kConnecting ? ECONNREFUSED : ECONNRESET);
  });
}

}  // namespace tutti::histories
