#include "beats.h"

#include <chrono>
#include <thread>
#include <vector>

#include "of_this_process.h"

namespace tutti::bootstrap {
namespace {

class BeatThread {
 public:
  void Begin() {
    std::thread([this] {
      while (true) {
        std::this_thread::sleep_for(std::chrono::milliseconds(kBeatMs));
        Beat();
      }
    }).detach();
  }
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

  std::mutex mutex_;
  std::vector<std::weak_ptr<BeatingLink>> links_;
};

}  // namespace

void BeatOn(const std::shared_ptr<BeatingLink>& link) { OfThisProcess<BeatThread>().Add(link); }

}  // namespace tutti::bootstrap
