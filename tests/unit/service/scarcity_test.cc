// What a daemon does where descriptors or memory run out: each call that asks the system for them fails once, in what two daemons
// do for a tenant from its first packet to its last.

#include "scarcity.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core.h"
#include "prompt_worker.h"
#include "running_daemon.h"
#include "schedule_text.h"
#include "strategy.h"
#include "support/raw_tenant.h"

namespace tutti::service {
namespace {

using test_support::RawTenant;
using testing::AnyOf;
using testing::HasSubstr;

constexpr size_t kHosts = 2;

DaemonOptions OptionsOfHost(size_t host) {
  DaemonOptions options;
  const std::string folder = testing::TempDir() + "tutti-scarce-" + std::to_string(getpid());
  options.socket = folder + "/" + std::to_string(host);
  options.admin = options.socket + "-admin";
  options.listen = "127.0.0.1";
  options.host = "H" + std::to_string(host);
  options.anybody = false;
  options.tenants = {{.name = "blue", .token = "b"}, {.name = "green", .token = "g"}};
  return options;
}

Result<std::unique_ptr<Daemon::Core>> StartDaemon(size_t host) {
  CoreParts parts;
  parts.planner = std::make_unique<PromptWorker>();
  return Daemon::Core::Start(OptionsOfHost(host), std::move(parts));
}

size_t OpenDescriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

size_t MappedMemoryFiles() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);)
    if (line.find("memfd:tutti-") != std::string::npos) ++count;
  return count;
}

// The daemons of two hosts in one thread; what one of them asks the system for may be scarce.
class TwoDaemons {
 public:
  TwoDaemons() {
    for (size_t host = 0; host < kHosts; ++host) {
      auto started = StartDaemon(host);
      if (!started) {
        ADD_FAILURE() << started.error().message;
        continue;
      }
      cores_[host] = std::move(*started);
    }
    thread_ = std::thread([this] { Run(); });
  }
  ~TwoDaemons() {
    ends_ = true;
    thread_.join();
  }

  // From now on, until Enough(), the n-th call of that daemon fails.
  void BeScarce(size_t host, int64_t fails) { BeScarce(host, Scarcity(fails)); }
  void BeScarce(size_t host, Scarcity scarcity) {
    const std::lock_guard lock(mutex_);
    scarce_host_ = host;
    scarcity_ = std::make_unique<Scarcity>(std::move(scarcity));
  }
  Scarcity Enough() {
    const std::lock_guard lock(mutex_);
    const std::unique_ptr<Scarcity> scarcity = std::exchange(scarcity_, nullptr);
    return *scarcity;
  }
  nlohmann::json Ask(size_t host, const nlohmann::json& request) const {
    const Result<std::string> answer = AskDaemon(OptionsOfHost(host).admin, request.dump());
    return answer ? nlohmann::json::parse(*answer)
                  : nlohmann::json{{"error", answer.error().message}};
  }
  // The communicators of a tenant there.
  std::vector<std::string> CommunicatorsOf(size_t host, const std::string& tenant) const {
    std::vector<std::string> labels;
    const nlohmann::json answer = Ask(host, {{"command", "comms"}});
    for (const nlohmann::json& each : answer["communicators"])
      if (each["tenant"] == tenant) labels.push_back(each["communicator"]);
    return labels;
  }
  // What a tenant has there: processes, ranks, bytes.
  bool HasNothing(size_t host, const std::string& token) {
    const std::lock_guard lock(mutex_);
    const Tenant* tenant = cores_[host]->FindTenant(getuid(), token);
    return tenant->processes == 0 && tenant->ranks == 0 && tenant->memory_bytes == 0;
  }

 private:
  void Run() {
    constexpr std::chrono::microseconds kRests{100};
    while (!ends_) {
      bool moved = false;
      for (size_t host = 0; host < kHosts; ++host) {
        const std::lock_guard lock(mutex_);
        const Scarcity::Scope scope(host == scarce_host_ ? scarcity_.get() : nullptr);
        moved = cores_[host]->RunOnce() || moved;
      }
      if (!moved) std::this_thread::sleep_for(kRests);
    }
  }

  std::array<std::unique_ptr<Daemon::Core>, kHosts> cores_;
  std::mutex mutex_;
  size_t scarce_host_ = 0;
  std::unique_ptr<Scarcity> scarcity_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

// A process of a tenant on each host, and a communicator of both. Each step says what was refused, in the daemon's words.
class Pair {
 public:
  static constexpr uint64_t kBytes = uint64_t{512} << 10;
  static constexpr uint64_t kCount = kBytes / sizeof(float);

  explicit Pair(const std::string& token) {
    for (size_t host = 0; host < kHosts; ++host)
      processes_[host] = std::make_unique<RawTenant>(OptionsOfHost(host).socket, token);
  }

  std::string Begin() {
    for (size_t host = 0; host < kHosts; ++host) {
      RawTenant& process = *processes_[host];
      if (!process.is_welcome()) return process.why_not();
      const auto given = process.Ask({.kind = ipc::Kind::kAllocate, .words = {kBytes}});
      if (!given) return "closed";
      if (given->packet.kind != ipc::Kind::kAllocated) return given->packet.text;
      auto mapped = ipc::Memory::Map(given->descriptors.at(0).fd(), kBytes, true);
      if (!mapped) return mapped.error().message;
      memory_[host] = std::move(*mapped);
    }
    return Join();
  }

  // An all-reduce in place, every element of it checked.
  std::string AllReduce() {
    ++sequence_;
    for (size_t host = 0; host < kHosts; ++host) {
      std::fill_n(Floats(host), kCount, static_cast<float>(sequence_ + host));
      processes_[host]->Submit({.sequence = sequence_,
                                .opcode = ipc::Opcode::kCollective,
                                .kind = static_cast<uint8_t>(CollectiveKind::kAllReduce),
                                .type = static_cast<uint8_t>(DataType::kFloat32),
                                .line = lines_[host],
                                .input = 1,
                                .output = 1,
                                .count = kCount});
    }
    for (size_t host = 0; host < kHosts; ++host) {
      const RawTenant& process = *processes_[host];
      const ipc::StatusLine& line = process.status().lines[lines_[host]];
      for (int look = 0; line.completed < sequence_; ++look) {
        if (line.state == ipc::LineState::kFailed)
          return process.AskOf({.kind = ipc::Kind::kWhy, .words = {lines_[host]}}).text;
        if (look >= kMostLooks) return "an all-reduce that never ends";
        std::this_thread::sleep_for(kLook);
      }
    }
    for (size_t host = 0; host < kHosts; ++host)
      for (uint64_t i = 0; i < kCount; ++i)
        if (Floats(host)[i] != static_cast<float>(2 * sequence_ + 1)) return "a wrong sum";
    return "";
  }

 private:
  static constexpr int kMostLooks = 30'000;
  static constexpr std::chrono::milliseconds kLook{1};

  float* Floats(size_t host) const { return reinterpret_cast<float*>(memory_[host].data()); }

  std::string Join() {
    const ipc::Packet id = processes_[0]->AskOf({.kind = ipc::Kind::kMakeId});
    if (id.kind != ipc::Kind::kIdMade) return id.text;
    std::array<pollfd, kHosts> waits;
    for (size_t host = 0; host < kHosts; ++host) {
      if (!processes_[host]->Send({.kind = ipc::Kind::kJoin,
                                   .request = host + 1,
                                   .words = {kHosts, host},
                                   .text = id.text}))
        return "closed";
      waits[host] = {.fd = processes_[host]->socket(), .events = POLLIN, .revents = 0};
    }
    // Where one is refused the other one waits for it.
    for (size_t joined = 0; joined < kHosts;) {
      constexpr int kMostMs = 30'000;
      if (poll(waits.data(), waits.size(), kMostMs) <= 0) return "a join that never ends";
      for (size_t host = 0; host < kHosts; ++host) {
        if (waits[host].revents == 0) continue;
        const auto answer = processes_[host]->Receive();
        if (!answer) return "closed";
        if (answer->packet.kind != ipc::Kind::kJoined) return answer->packet.text;
        lines_[host] = static_cast<uint32_t>(answer->packet.words[0]);
        waits[host].fd = -1;
        ++joined;
      }
    }
    return "";
  }

  std::array<std::unique_ptr<RawTenant>, kHosts> processes_;
  std::array<ipc::Memory, kHosts> memory_;
  std::array<uint32_t, kHosts> lines_{};
  uint64_t sequence_ = 0;
};

// Once nothing is under way any more.
size_t DescriptorsAtRest() {
  constexpr int kAlike = 20;
  size_t count = OpenDescriptors();
  for (int alike = 0; alike < kAlike; ++alike) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (const size_t now = OpenDescriptors(); now != std::exchange(count, now)) alike = 0;
  }
  return count;
}

// An all-reduce of two ranks in a file of 100 KiB.
std::string LargeSchedule() {
  static const std::string text = [] {
    std::string json = ScheduleText("ring(2)", CollectiveKind::kAllReduce, "ring");
    json.append(100 << 10, ' ');
    return json;
  }();
  return text;
}

// All that a tenant and its operator ask for. What was refused first; empty: nothing.
std::string UseAll(TwoDaemons& daemons) {
  Pair pair("b");
  if (std::string why = pair.Begin(); !why.empty()) return why;
  if (std::string why = pair.AllReduce(); !why.empty()) return why;
  const std::vector<std::string> labels = daemons.CommunicatorsOf(0, "blue");
  if (labels.size() != 1) return "comms: one was wanted";
  // Flows make it listen at every address of the host.
  const nlohmann::json changed =
      daemons.Ask(0, {{"command", "reconfigure"},
                      {"communicator", labels[0]},
                      {"flows", {{{"from", 0}, {"to", 1}, {"ports", {42'000, 100}}}}}});
  // Whether or not it was changed, the communicator goes on.
  if (std::string why = pair.AllReduce(); !why.empty()) return "after a change: " + why;
  if (changed.contains("error")) return changed["error"];
  // A schedule that is large to read, to pass on and to keep.
  const nlohmann::json scheduled =
      daemons.Ask(0, {{"command", "reconfigure"},
                      {"communicator", labels[0]},
                      {"schedules", {{{"name", "large.sched"}, {"text", LargeSchedule()}}}}});
  if (std::string why = pair.AllReduce(); !why.empty()) return "after a schedule: " + why;
  return scheduled.contains("error") ? scheduled["error"].get<std::string>() : "";
}

bool Soon(const std::function<bool()>& holds) {
  constexpr int kMostLooks = 3'000;
  for (int look = 0; look < kMostLooks; ++look) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

// Another tenant, whose collectives run all the while.
class Bystander {
 public:
  Bystander() : pair_("g") {
    Hear(pair_.Begin());
    thread_ = std::thread([this] {
      while (!ends_ && why_.empty()) {
        Hear(pair_.AllReduce());
        ++operations_;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    });
    EXPECT_TRUE(Soon([this] { return operations_ > 0; }));
  }
  // What became of it.
  std::string End() {
    ends_ = true;
    if (thread_.joinable()) thread_.join();
    return why_;
  }
  ~Bystander() { End(); }
  int64_t operations() const { return operations_; }

 private:
  void Hear(const std::string& why) {
    if (!why.empty()) why_ = why;
  }

  Pair pair_;
  std::string why_;
  std::atomic<int64_t> operations_ = 0;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

// What the system says where there is none, or what the daemon says in its place.
testing::Matcher<std::string> Names(const Scarcity& scarcity) {
  return AnyOf(HasSubstr(std::strerror(scarcity.error())), HasSubstr("no descriptor left"),
               HasSubstr("no memory left"));
}

void CheckEveryCall(size_t scarce_host) {
  TwoDaemons daemons;
  Bystander bystander;
  const auto is_clean = [&daemons] {
    for (size_t host = 0; host < kHosts; ++host)
      if (!daemons.HasNothing(host, "b") || !daemons.CommunicatorsOf(host, "blue").empty())
        return false;
    return true;
  };
  ASSERT_EQ(UseAll(daemons), "");
  ASSERT_TRUE(Soon(is_clean));
  const size_t descriptors = DescriptorsAtRest(), memory = MappedMemoryFiles();
  int64_t refused = 0, number = 1;
  for (;; ++number) {
    if (testing::Test::HasFailure()) break;
    const int64_t before = bystander.operations();
    daemons.BeScarce(scarce_host, number);
    const std::string why = UseAll(daemons);
    const Scarcity scarcity = daemons.Enough();
    SCOPED_TRACE(std::to_string(number) + ": " + scarcity.failed() + ": " + why);
    if (!why.empty()) {
      EXPECT_THAT(why, Names(scarcity));
      ++refused;
    }
    EXPECT_TRUE(Soon(is_clean));
    EXPECT_TRUE(Soon([&] { return bystander.operations() > before + 1; }));
    EXPECT_EQ(UseAll(daemons), "");
    EXPECT_TRUE(Soon(is_clean));
    EXPECT_TRUE(Soon([&] { return OpenDescriptors() == descriptors; }))
        << OpenDescriptors() << " descriptors, " << descriptors << " before";
    EXPECT_TRUE(Soon([&] { return MappedMemoryFiles() == memory; }));
    if (scarcity.failed().empty()) break;
  }
  EXPECT_EQ(bystander.End(), "");
  fmt::print("{} calls, {} of them refused a request\n", number - 1, refused);
  // The scenario asks for what there is to ask for.
  EXPECT_GT(number, 20);
  EXPECT_GT(refused, 5);
}

TEST(ScarcitySlow, EachCallOfTheRootsDaemon) { CheckEveryCall(0); }

TEST(ScarcitySlow, EachCallOfAnotherDaemon) { CheckEveryCall(1); }

// Ranks have joined, and there is no descriptor for the connections between them, however often one is asked for.
TEST(ScarcitySlow, ADaemonThatStaysWithoutDescriptorsSaysSoAndGoesOn) {
  TwoDaemons daemons;
  Bystander bystander;
  Pair pair("b");
  ASSERT_EQ(pair.Begin(), "");
  const int64_t before = bystander.operations();
  daemons.BeScarce(0, Scarcity("socket"));
  EXPECT_THAT(pair.AllReduce(), HasSubstr("could not be made within 10 s: Too many open files"));
  daemons.Enough();
  EXPECT_TRUE(Soon([&] { return bystander.operations() > before + 1; }));
  Pair again("b");
  EXPECT_EQ(again.Begin(), "");
  EXPECT_EQ(again.AllReduce(), "");
  EXPECT_EQ(bystander.End(), "");
}

// A daemon that does not get what it needs does not start, and says why.
TEST(Scarcity, EachCallOfADaemonThatStarts) {
  const size_t descriptors = OpenDescriptors();
  for (int64_t number = 1;; ++number) {
    Scarcity scarcity(number);
    {
      const Scarcity::Scope scope(&scarcity);
      const auto started = StartDaemon(0);
      if (!started) {
        EXPECT_THAT(started.error().message, Names(scarcity)) << number << " " << scarcity.failed();
      }
    }
    EXPECT_EQ(OpenDescriptors(), descriptors) << number << ": " << scarcity.failed();
    if (scarcity.failed().empty()) {
      EXPECT_GT(number, 5);
      break;
    }
    const auto again = StartDaemon(0);
    EXPECT_TRUE(again) << again.error().message;
  }
}

// In the planner's thread nobody else would take the exception.
TEST(Scarcity, APlanThatThereIsNoMemoryForIsAnErrorAndIsMadeLater) {
  const CollectiveCall call{.kind = CollectiveKind::kAllReduce, .count = 1 << 20};
  for (int64_t number = 1;; ++number) {
    const auto strategy = Strategy::Make({}, 64);
    ASSERT_TRUE(strategy) << strategy.error().message;
    Scarcity scarcity(number);
    Status planned;
    {
      const Scarcity::Scope scope(&scarcity);
      planned = (*strategy)->Prepare(call, false);
    }
    if (scarcity.failed().empty()) {
      EXPECT_TRUE(planned) << planned.error().message;
      EXPECT_GT(number, 1);
      return;
    }
    ASSERT_FALSE(planned) << number;
    EXPECT_EQ(planned.error().code, ErrorCode::kResourceExhausted);
    EXPECT_FALSE((*strategy)->IfMade(call, false)) << number;
    EXPECT_TRUE((*strategy)->Prepare(call, false)) << number;
    EXPECT_TRUE((*strategy)->IfMade(call, false)) << number;
  }
}

}  // namespace
}  // namespace tutti::service
