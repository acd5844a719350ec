// Random numbers that are the same on any machine: every part of a call is drawn from a key of its
// own, so that all ranks know what all of them draw without a message.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace tutti::mpi::differential {

class Random {
 public:
  Random(std::initializer_list<uint64_t> key) {
    for (const uint64_t each : key) state_ = Mix(state_ + kStep + each);
  }

  uint64_t Next() { return Mix(state_ += kStep); }
  // From 0 to limit - 1; limit >= 1.
  int64_t Below(int64_t limit) {
    return static_cast<int64_t>(Next() % static_cast<uint64_t>(limit));
  }
  // Both ends can be drawn.
  int64_t Between(int64_t least, int64_t most) { return least + Below(most - least + 1); }
  bool OneIn(int times) { return Below(times) == 0; }

  template <class T>
  const T& Of(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(Below(static_cast<int64_t>(choices.size())))];
  }
  template <class T>
  void Shuffle(std::vector<T>& values) {
    for (size_t left = values.size(); left > 1; --left) {
      std::swap(values[left - 1], values[static_cast<size_t>(Below(static_cast<int64_t>(left)))]);
    }
  }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15U;

  // splitmix64
  static uint64_t Mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  }

  uint64_t state_ = 0;
};

}  // namespace tutti::mpi::differential
