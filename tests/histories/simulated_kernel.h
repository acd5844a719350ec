// SimulatedKernel: a clock, hosts and TCP between them, in one thread and in no time: what the daemon's code asks of an operating
// system, so that the daemon runs as it is shipped while a test decides what its network does.
//
// Model       The test is linked with --wrap for the calls in simulated_calls.cc; those of a thread with a SimulatedKernel go to
//             it, all others to the system. Time passes from event to event. On a host runs at most one
//             process that has sockets. Segments between two hosts arrive after a delay, in order, or are
//             lost: by chance, or because their route is cut. What is not acknowledged is sent again after 200 ms,
//             then after twice as long each time. Routes are chosen by the source port, as switches do:
//             [kFirstRoutePort + k * kPortsARoute, + kPortsARoute) is route k, any other port by a hash.
// Left out    Windows of receivers (they have room for all), congestion, TIME_WAIT, keep-alive, IPv6, paths of Unix
//             sockets.
// Determinism The same seed and calls give the same history; descriptors count from kFirstDescriptor.
// Threads     One.
#pragma once

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tutti/base/random.h"

namespace tutti::histories {

inline constexpr int64_t kMs = 1'000'000, kSecond = 1'000 * kMs;

struct NetworkOptions {
  int32_t hosts = 2, routes = 2;
  int64_t delay_ns = 20'000, jitter_ns = 20'000;
  uint32_t lost_of_million = 0;       // segments
  uint32_t late_acks_of_hundred = 5;  // acknowledgements that wait for up to 40 ms
  size_t send_buffer = size_t{64} << 10;
};

class SimulatedKernel {
 public:
  static constexpr int kFirstDescriptor = 1 << 20;
  static constexpr uint16_t kFirstRoutePort = 50'000, kPortsARoute = 1'000;
  static constexpr uint32_t kFirstAddress = 0x0a000001u;
  static constexpr int64_t kStartNs =
      4'000'000'000 * kSecond;  // beyond the system's, in both clocks

  SimulatedKernel(uint64_t seed, const NetworkOptions& options);
  ~SimulatedKernel();
  SimulatedKernel(const SimulatedKernel&) = delete;
  SimulatedKernel& operator=(const SimulatedKernel&) = delete;
  // Of this thread; null: none.
  static SimulatedKernel* current();

  // --- For the test
  int64_t now_ns() const { return now_ns_; }
  void Spend(int64_t ns) { now_ns_ += ns; }
  Random& random() { return random_; }
  void At(int64_t ns, std::function<void()> run);
  // The next event. False: there is none.
  bool RunNext();
  // 10.0.HOST.(1 + nic)
  static uint32_t AddressOf(int32_t host, int32_t nic = 0) {
    return kFirstAddress + (static_cast<uint32_t>(host) << 8) + static_cast<uint32_t>(nic);
  }
  // Whose process makes the calls that follow.
  void Enter(int32_t host) { host_ = host; }
  // Called when a socket of that host's process has news.
  void SetNews(std::function<void(int32_t host)> news) { news_ = std::move(news); }
  // A Unix socket that listens, which nobody connects to.
  int OpenUnixListener(int type);
  // Segments from one host to another on that route are lost, from now on or not any more.
  void SetCut(int32_t from, int32_t to, int32_t route, bool cut) {
    if (cut)
      cuts_.insert({from, to, route});
    else
      cuts_.erase({from, to, route});
  }
  // The host's process ends: its descriptors are closed, those that it still uses are gone.
  void KillProcess(int32_t host);
  // The host is gone without a word; it is back with Start().
  void CutPower(int32_t host);
  void Start(int32_t host) { down_[static_cast<size_t>(host)] = false; }
  // The data connections (those from or to a port that is no listener's of a daemon) that are open; one of them is reset.
  bool ResetOne(uint16_t but_to_port);
  // One of the open connections whose first bytes, as who made it sent them, are such.
  using IsWanted = std::function<bool(std::string_view first)>;
  bool ResetOne(const IsWanted& is_wanted, Random& random);
  size_t DescriptorsOf(int32_t host) const;
  // The next message with these first bytes, and so many in all, that some host sends is changed on its way.
  using Tamper = std::function<void(std::string& bytes)>;
  void SetTamper(Tamper tamper) { tamper_ = std::move(tamper); }
  int64_t segments() const { return segments_; }
  uint64_t DrawWord() { return random_.Next(); }

  // --- The calls; -1 with errno set where they fail
  static bool Has(int fd) { return fd >= kFirstDescriptor; }
  int Socket(int domain, int type);
  int Bind(int fd, const sockaddr* address);
  int Listen(int fd);
  int Connect(int fd, const sockaddr* address);
  int Accept(int fd);
  int Close(int fd);
  int Shutdown(int fd);
  ssize_t Send(int fd, const void* bytes, size_t size);
  ssize_t Receive(int fd, void* bytes, size_t size);
  short Poll(int fd, short events) const;
  int GetOption(int fd, int level, int name, void* value, socklen_t* size);
  int SetOption(int fd, int level, int name, const void* value);
  int NameOf(int fd, sockaddr* address, socklen_t* size, bool of_peer) const;
  int OpenEpoll();
  int ControlEpoll(int epoll, int how, int fd, epoll_event* event);
  int WaitEpoll(int epoll, epoll_event* events, int most);
  int OpenCounter();
  ssize_t ReadCounter(int fd, uint64_t* value);
  ssize_t WriteCounter(int fd, uint64_t value);

 private:
  static constexpr size_t kFirstBytes = 128;

  struct End {
    int fd = -1;
    int32_t host = 0;
    uint32_t address = 0;
    uint16_t port = 0;
    enum class State : uint8_t { kConnecting, kOpen, kOver } state = State::kConnecting;
    bool is_closed = false;                // by its process
    bool is_unaccepted = false;            // waits for accept(), or for what makes it wait there
    int listener = -1;                     // where
    std::string out;                       // from `acked` on
    uint64_t acked = 0;                    // bytes, and the end
    std::deque<uint64_t> flight;           // ends of segments that are under way
    bool ends = false, end_acked = false;  // it has shut down; the other one knows
    std::string in;
    size_t taken = 0;  // of `in`
    uint64_t received = 0;
    bool has_ended = false;  // the other one has shut down
    int error = 0;
    int64_t next_arrival_ns = 0;
    int64_t resend_ns = 0, waits_since_ns = 0, patience_ns = 0;
    uint64_t timer = 0;  // number of the one that counts
    uint32_t repeats = 0;
    bool ack_under_way = false, ack_is_late = false, was_full = false, at_once = false;
  };
  struct Wire {
    uint64_t id = 0;
    std::array<End, 2> ends;  // who connected, and to whom
    std::string first;        // bytes of the former, up to kFirstBytes
  };
  struct Watch {
    int epoll = -1;
    uint32_t events = 0;
    epoll_data_t data{};
    bool edge = false, pending = false;
  };
  struct File {
    enum class Kind : uint8_t {
      kFresh,
      kListener,
      kUnixListener,
      kWire,
      kEpoll,
      kCounter
    } kind = Kind::kFresh;
    int32_t host = 0;
    int domain = AF_INET, type = SOCK_STREAM;
    uint32_t address = 0;
    uint16_t port = 0;
    int64_t patience_ns = 0;
    bool at_once = false;
    std::shared_ptr<Wire> wire;
    int side = 0;
    std::deque<std::pair<std::shared_ptr<Wire>, int>> waiting;  // to be accepted
    std::map<int, Watch> watched;                               // of an epoll, by descriptor
    std::set<int> candidates;                                   // of an epoll: may have something
    std::vector<int> watchers;                                  // epolls
    uint64_t count = 0;
  };
  struct Event {
    int64_t ns = 0;
    uint64_t number = 0;
    std::function<void()> run;
    bool operator<(const Event& other) const {
      return ns != other.ns ? ns > other.ns : number > other.number;
    }
  };

  File* Find(int fd);
  const File* Find(int fd) const;
  int Open(File::Kind kind);
  uint32_t StateOf(int fd) const;
  void Tell(int fd);
  static int Fail(int error);
  int32_t RouteOf(const End& from, const End& to) const;
  bool IsLost(const Wire& wire, int from);
  // When what leaves now gets there.
  int64_t Arrival(End& to);
  void SendFirst(const std::shared_ptr<Wire>& wire, int64_t wait_ns);
  void HearFirst(const std::shared_ptr<Wire>& wire);
  void AnswerFirst(const std::shared_ptr<Wire>& wire);
  void BecomeAcceptable(const std::shared_ptr<Wire>& wire);
  void Transmit(const std::shared_ptr<Wire>& wire, int from, uint64_t at, std::string bytes,
                bool ends);
  void Arrive(const std::shared_ptr<Wire>& wire, int to, uint64_t at, const std::string& bytes,
              bool ends);
  void Acknowledge(const std::shared_ptr<Wire>& wire, int from);
  void HearAck(const std::shared_ptr<Wire>& wire, int to, uint64_t up_to);
  void SetTimer(const std::shared_ptr<Wire>& wire, int from);
  void Resend(const std::shared_ptr<Wire>& wire, int from);
  void SendReset(const std::shared_ptr<Wire>& wire, int from);
  void EndWith(End& end, int error);
  bool ResetOneOf(const std::function<bool(const Wire&)>& is_wanted, Random& random);
  void LetGo(const std::shared_ptr<Wire>& wire, int side, bool rudely);
  bool TakePort(uint16_t port, const Wire& wire);
  File* ListenerAt(int32_t host, uint16_t port, int& fd);
  static int32_t HostOf(uint32_t address) {
    return static_cast<int32_t>((address - kFirstAddress) >> 8);
  }

  NetworkOptions options_;
  Random random_;
  SimulatedKernel* before_;
  int64_t now_ns_ = kStartNs;
  uint64_t events_made_ = 0, wires_made_ = 0;
  std::priority_queue<Event> events_;
  int32_t host_ = 0;
  std::function<void(int32_t)> news_;
  std::vector<bool> down_;
  std::vector<uint16_t> next_port_;
  std::set<std::tuple<int32_t, int32_t, int32_t>> cuts_;
  int next_fd_ = kFirstDescriptor;
  std::unordered_map<int, File> files_;
  std::vector<std::weak_ptr<Wire>> wires_;
  Tamper tamper_;
  int64_t segments_ = 0;
};

}  // namespace tutti::histories
