// PathWatch: the ways through the network that connections of a communicator have left because nothing came back, watched until
// something does again, however long that takes.
//
// Model       That one connection fell silent does not say that its way is cut: a full queue is silent as well, and what
//             comes back takes a way of its own, which the network's hash chooses. So, at once and then each second, kProbes
//             connections are tried from other ports of the way to where it led, whose answers come back by other ways. A way is
//             *cut* once none of them was answered within kDecideNs. One that is made, or refused, means that the way leads there:
//             it is forgotten. Ways without ports of their own (the network's hash decides) are forgotten after kUnknownNs: no
//             connection would show that it is the same way.
// Complexity  Tick(): kProbes system calls at most for each way.
// Threads     The daemon's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "tcp_transport.h"
#include "tutti/ipc/socket.h"

namespace tutti::service {

class PathWatch {
 public:
  static constexpr int64_t kBetweenNs = 1'000'000'000, kDecideNs = 500'000'000,
                           kUnknownNs = 10'000'000'000, kSuspectNs = 2'000'000'000;
  static constexpr size_t kProbes =
      8;  // the network's hash sends the answers of all by one cut way of two: 1 in 256

  struct Lost {
    int32_t from = 0;  // rank
    LostWay way;
    int64_t since_ns = 0;
    bool is_cut = false;
  };

  void Add(int32_t from, const LostWay& way, int64_t now_ns);
  // To be called now and then.
  void Tick(int64_t now_ns);
  const std::vector<Lost>& lost() const { return lost_; }
  // A connection by these ports has been left within kSuspectNs, whatever was found out of its way since.
  bool Suspects(const TcpPorts& ports, int64_t now_ns) const {
    return suspects_.count(ports) > 0 && now_ns - suspects_.at(ports) < kSuspectNs;
  }
  int64_t total() const { return total_; }  // ever

 private:
  struct Probes {
    std::vector<ipc::Descriptor> under_way;
    int64_t begun_ns = 0, next_ns = 0;
    uint16_t port = 0;  // of the way's, that the next one takes
  };
  // True: an answer came.
  static bool Look(Lost& lost, Probes& probes, int64_t now_ns);
  static bool HearAny(Probes& probes);
  // True: the other end answered at once.
  static bool Send(const LostWay& way, Probes& probes);

  std::vector<Lost> lost_;
  std::vector<Probes> probes_;            // of each
  std::map<TcpPorts, int64_t> suspects_;  // when they were left last
  int64_t total_ = 0;
};

}  // namespace tutti::service
