// OnceMade: what the ranks of a process share, by a key: one makes it, the others wait for it, and it is gone
// when nobody has it any more.
//
// Threads     Any. Things of different keys are made one after the other.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "tutti/base/result.h"

namespace tutti {

template <class Key, class Thing>
class OnceMade {
 public:
  // make(): Result<std::shared_ptr<Thing>>. An error is not kept.
  template <class Make>
  Result<std::shared_ptr<Thing>> Get(const Key& key, Make make) {
    const std::lock_guard making(mutex_);
    std::erase_if(things_, [](const auto& entry) { return entry.second.expired(); });
    if (const auto found = things_.find(key); found != things_.end())
      if (auto thing = found->second.lock()) return thing;
    Result<std::shared_ptr<Thing>> made = make();
    if (made) things_[key] = *made;
    return made;
  }

 private:
  std::mutex mutex_;
  std::map<Key, std::weak_ptr<Thing>> things_;
};

}  // namespace tutti
