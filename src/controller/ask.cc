#include "ask.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace tutti::controller {

void AskAtOnce(size_t count, int32_t at_once, const std::function<void(size_t)>& ask) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) ask(i);
  };
  std::vector<std::thread> threads;
  const size_t wanted = std::min(count, static_cast<size_t>(at_once));
  try {
    while (threads.size() + 1 < wanted) threads.emplace_back(work);
  } catch (const std::system_error&) {
    // Fewer at once.
  }
  work();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tutti::controller
