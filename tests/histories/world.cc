#include "world.h"

#include <algorithm>

#include "late_worker.h"

namespace tutti::histories {
namespace {

thread_local World* world_of_thread = nullptr;

BarrierStep HookedStep(const BarrierState& state, const BarrierEvent& event) {
  return world_of_thread->OnBarrier(state, event);
}

}  // namespace

World::World(const HistoryOptions& options) : options_(options), random_(options.seed) {
  world_of_thread = this;
  by_controller_ = Chance(20);
  network_.hosts = by_controller_ ? (Chance(50) ? 2 : 4) : 2 + static_cast<int32_t>(Draw(3));
  network_.routes = by_controller_ ? 2 : 2 + static_cast<int32_t>(Draw(2));
  network_.delay_ns = 5 * kUs + DrawNs(200 * kUs);
  network_.jitter_ns = DrawNs(300 * kUs);
  network_.late_acks_of_hundred = static_cast<uint32_t>(Draw(20));
  network_.send_buffer = size_t{256} << Draw(9);
  // What a controller installs has some 100 KiB, which must not take longer than the time that is checked.
  constexpr size_t kLeastOfController = size_t{16} << 10;
  if (by_controller_) network_.send_buffer = std::max(network_.send_buffer, kLeastOfController);
  kernel_ = std::make_unique<SimulatedKernel>(random_.Next(), network_);
  kernel_->SetNews([this](int32_t host) { Wake(host); });
  hosts_.resize(static_cast<size_t>(network_.hosts));
  for (int32_t host = 0; host < network_.hosts; ++host) StartDaemon(host);
}

World::~World() {
  for (int32_t host = 0; host < network_.hosts; ++host) {
    kernel_->Enter(host);
    hosts_[static_cast<size_t>(host)].core.reset();
  }
  world_of_thread = nullptr;
}

void World::StartDaemon(int32_t number) {
  Host& host = hosts_[static_cast<size_t>(number)];
  kernel_->Enter(number);
  service::DaemonOptions options;
  options.listen = fmt::format("10.0.{}.1", number);
  options.port = kControlPort;
  options.host = fmt::format("H{}", number);
  for (int32_t nic = 0; nic < kNics; ++nic)
    options.nics.push_back(fmt::format("10.0.{}.{}", number, nic + 1));
  options.anybody = false;
  for (const char* name : {"A", "B"}) {
    service::TenantOptions& tenant = options.tenants.emplace_back();
    tenant.name = name;
    tenant.token = Token(name);
  }
  options.passed = {{"tenants", kernel_->OpenUnixListener(SOCK_SEQPACKET)},
                    {"admin", kernel_->OpenUnixListener(SOCK_STREAM)}};
  service::CoreParts parts;
  parts.planner = std::make_unique<LateWorker>(*kernel_, [this, number] { Wake(number); });
  parts.barrier = HookedStep;
  Result<std::unique_ptr<Core>> core = Core::Start(options, std::move(parts));
  if (!core) return Break(fmt::format("H{} does not start: {}", number, core.error().message));
  host.core = std::move(*core);
  ++host.life;
  host.stands_still_until_ns = 0;
  host.descriptors = kernel_->DescriptorsOf(number);
  Wake(number);
}

void World::EndDaemon(int32_t number, bool silently) {
  Host& host = hosts_[static_cast<size_t>(number)];
  if (host.core == nullptr) return;
  if (silently)
    kernel_->CutPower(number);
  else
    kernel_->KillProcess(number);
  for (SimulatedRank& rank : ranks_)
    if (rank.host() == number && rank.stage() != SimulatedRank::Stage::kToJoin) rank.Die(false);
  kernel_->Enter(number);
  host.core.reset();
  host.step_ns = 0;
  for (SimulatedRank& rank : ranks_)
    if (rank.host() == number) rank.Die(false);
}

Core* World::Enter(int32_t number, const std::function<void()>& again) {
  Host& host = hosts_[static_cast<size_t>(number)];
  if (host.core == nullptr) return nullptr;
  if (kernel_->now_ns() < host.stands_still_until_ns) {
    kernel_->At(host.stands_still_until_ns + 1, again);
    return nullptr;
  }
  kernel_->Enter(number);
  return host.core.get();
}

void World::Wake(int32_t host) {
  constexpr int64_t kMostNs = 15 * kUs;
  hosts_[static_cast<size_t>(host)].news_ns = kernel_->now_ns();
  ScheduleStep(host, After(1 + DrawNs(kMostNs)));
}

void World::ScheduleStep(int32_t number, int64_t at_ns) {
  Host& host = hosts_[static_cast<size_t>(number)];
  if (host.core == nullptr) return;
  at_ns = std::max(at_ns, host.stands_still_until_ns + 1);
  if (host.step_ns != 0 && host.step_ns <= at_ns) return;
  host.step_ns = at_ns;
  kernel_->At(at_ns, [this, number, at_ns] {
    if (hosts_[static_cast<size_t>(number)].step_ns == at_ns) Step(number);
  });
}

void World::Step(int32_t number) {
  constexpr int kIdleRounds = 6, kMostRounds = 400;
  Host& host = hosts_[static_cast<size_t>(number)];
  host.step_ns = 0;
  if (host.core == nullptr) return;
  if (kernel_->now_ns() < host.stands_still_until_ns)
    return ScheduleStep(number, host.stands_still_until_ns + 1);
  kernel_->Enter(number);
  int idle = 0;
  for (int round = 0; round < kMostRounds && idle < kIdleRounds; ++round) {
    idle = host.core->RunOnce() ? 0 : idle + 1;
    kernel_->Spend(kUs / 2);
  }
  // Where nothing comes for long it is looked after less often, for the sake of more histories.
  constexpr int64_t kQuietNs = 300 * kMs, kSeldomNs = 20 * kMs;
  const int64_t least = kernel_->now_ns() - host.news_ns > kQuietNs ? kSeldomNs : 0;
  ScheduleStep(number,
               After(idle < kIdleRounds ? 1 : std::max(host.core->MostSleepMs() * kMs, least)));
}

void World::RunUntil(int64_t ns) {
  while (outcome_.broken.empty() && kernel_->now_ns() < ns && kernel_->RunNext()) {
  }
}

void World::Settle() {
  constexpr int64_t kSettlesNs = 4 * kSecond, kSilenceNs = 15 * kSecond;
  RunUntil(After(death_ == Death::kHost ? kSilenceNs : kSettlesNs));
  // Where a way was cut, what a daemon has to hear is on its way until the other one takes it for gone.
  const int64_t last = After(kSilenceNs);
  std::string left = WhatIsLeft();
  while (!left.empty() && kernel_->now_ns() < last && outcome_.broken.empty()) {
    RunUntil(After(kSecond));
    left = WhatIsLeft();
  }
  if (!left.empty()) Break("H6: " + left);
}

HistoryOutcome World::Run() {
  MakeGroup("A");
  if (Chance(35)) MakeGroup("B");
  PlanFaults();
  PlanDeath();
  if (!dies() && Chance(15)) groups_.front().grows_by = 1 + static_cast<int32_t>(Draw(2));
  if (by_controller_)
    PlanControllers();
  else
    PlanChanges();
  BreakARule();
  constexpr int64_t kMostNs = 90 * kSecond;
  const int64_t until = After(kMostNs);
  while (outcome_.broken.empty() && kernel_->now_ns() < until && (active_ > 0 || pending_ > 0) &&
         kernel_->RunNext()) {
  }
  if (outcome_.broken.empty()) CheckEnd();
  Settle();
  outcome_.segments = kernel_->segments();
  outcome_.simulated_ns = kernel_->now_ns() - SimulatedKernel::kStartNs;
  outcome_.something_died = dies();
  outcome_.digest = digest_.value();
  return outcome_;
}

}  // namespace tutti::histories
