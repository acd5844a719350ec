#include "simulated_kernel.h"

#include <algorithm>
#include <cerrno>

namespace tutti::histories {
namespace {

thread_local SimulatedKernel* kernel_of_thread = nullptr;

}  // namespace

SimulatedKernel::SimulatedKernel(uint64_t seed, const NetworkOptions& options)
    : options_(options),
      random_(seed),
      before_(std::exchange(kernel_of_thread, this)),
      down_(static_cast<size_t>(options.hosts)),
      next_port_(static_cast<size_t>(options.hosts), 32'768) {}

SimulatedKernel::~SimulatedKernel() { kernel_of_thread = before_; }

SimulatedKernel* SimulatedKernel::current() { return kernel_of_thread; }

void SimulatedKernel::At(int64_t ns, std::function<void()> run) {
  events_.push({ns, events_made_++, std::move(run)});
}

bool SimulatedKernel::RunNext() {
  if (events_.empty()) return false;
  const std::function<void()> run = std::move(const_cast<Event&>(events_.top()).run);
  now_ns_ = std::max(now_ns_, events_.top().ns);
  events_.pop();
  run();
  return true;
}

int SimulatedKernel::Fail(int error) {
  errno = error;
  return -1;
}

SimulatedKernel::File* SimulatedKernel::Find(int fd) {
  const auto found = files_.find(fd);
  return found == files_.end() ? nullptr : &found->second;
}
const SimulatedKernel::File* SimulatedKernel::Find(int fd) const {
  const auto found = files_.find(fd);
  return found == files_.end() ? nullptr : &found->second;
}

int SimulatedKernel::Open(File::Kind kind) {
  const int fd = next_fd_++;
  File& file = files_[fd];
  file.kind = kind;
  file.host = host_;
  return fd;
}

size_t SimulatedKernel::DescriptorsOf(int32_t host) const {
  return static_cast<size_t>(std::count_if(
      files_.begin(), files_.end(), [host](const auto& file) { return file.second.host == host; }));
}

void SimulatedKernel::KillProcess(int32_t host) {
  std::vector<int> own;
  for (const auto& [fd, file] : files_)
    if (file.host == host) own.push_back(fd);
  std::sort(own.begin(), own.end());
  for (const int fd : own) Close(fd);
}

void SimulatedKernel::CutPower(int32_t host) {
  down_[static_cast<size_t>(host)] = true;
  std::vector<int> own;
  for (const auto& [fd, file] : files_)
    if (file.host == host) own.push_back(fd);
  std::sort(own.begin(), own.end());
  for (const int fd : own) Close(fd);
  for (const auto& weak : wires_)
    if (const auto wire = weak.lock())
      for (End& end : wire->ends)
        if (end.host == host) {
          end.state = End::State::kOver;
          ++end.timer;
        }
}

bool SimulatedKernel::ResetOne(uint16_t but_to_port) {
  return ResetOneOf([but_to_port](const Wire& wire) { return wire.ends[1].port != but_to_port; },
                    random_);
}

bool SimulatedKernel::ResetOne(const IsWanted& is_wanted, Random& random) {
  return ResetOneOf([&is_wanted](const Wire& wire) { return is_wanted(wire.first); }, random);
}

bool SimulatedKernel::ResetOneOf(const std::function<bool(const Wire&)>& is_wanted,
                                 Random& random) {
  std::vector<std::shared_ptr<Wire>> open;
  for (const auto& weak : wires_) {
    auto wire = weak.lock();
    if (wire != nullptr && wire->ends[0].state == End::State::kOpen && wire->ends[0].fd >= 0 &&
        wire->ends[1].fd >= 0 && is_wanted(*wire))
      open.push_back(std::move(wire));
  }
  if (open.empty()) return false;
  const auto wire = open[random.Below(open.size())];
  for (End& end : wire->ends) EndWith(end, ECONNRESET);
  return true;
}

}  // namespace tutti::histories
