#include "beats.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace tutti::bootstrap {
namespace {

// Never destroyed: its thread may outlive whoever would do it, and a child that was forked has the object and no
// thread.
class BeatThread {
 public:
  // Once, by who makes it known to others.
  void Begin() {
    std::thread([this] {
      while (true) {
        std::this_thread::sleep_for(std::chrono::milliseconds(kBeatMs));
        Beat();
      }
    }).detach();
  }
  bool is_of_this_process() const { return getpid() == process_; }
  void Add(const std::shared_ptr<BeatingLink>& link) {
    const std::lock_guard lock(mutex_);
    links_.push_back(link);
  }

 private:
  void Beat() {
    std::vector<std::shared_ptr<BeatingLink>> links;
    {
      const std::lock_guard lock(mutex_);
      for (const std::weak_ptr<BeatingLink>& each : links_)
        if (auto link = each.lock()) links.push_back(std::move(link));
      links_.assign(links.begin(), links.end());
    }
    for (const std::shared_ptr<BeatingLink>& each : links) {
      const std::lock_guard sending(each->sending);
      each->link.SendIfRoom(FrameType::kBeat, "");
    }
  }

  const pid_t process_ = getpid();
  std::mutex mutex_;
  std::vector<std::weak_ptr<BeatingLink>> links_;
};

}  // namespace

void BeatOn(const std::shared_ptr<BeatingLink>& link) {
  // No lock, which another thread might have held when this process was forked.
  static std::atomic<BeatThread*> known{nullptr};
  BeatThread* beats = known.load();
  while (beats == nullptr || !beats->is_of_this_process()) {
    auto fresh = std::make_unique<BeatThread>();
    if (!known.compare_exchange_strong(beats, fresh.get())) continue;
    beats = fresh.release();
    beats->Begin();
  }
  beats->Add(link);
}

}  // namespace tutti::bootstrap
