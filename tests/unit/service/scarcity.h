// Scarcity: calls of the tested code that ask the system for memory or descriptors, of which the n-th finds none left.
//
// Model       The test is linked with --wrap for the calls in scarcity.cc. Those of a thread in whose Scope they are made are counted
//             from 1; number `fails` fails with the error that Linux has for it, all others are the system's. Or a call of a name
//             fails each time.
// Threads     A Scope is of the thread that made it; a Scarcity is of one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace tutti::service {

class Scarcity {
 public:
  // 0: none fails.
  explicit Scarcity(int64_t fails) : fails_(fails) {}
  explicit Scarcity(std::string always) : fails_(0), always_(std::move(always)) {}

  int64_t calls() const { return calls_; }
  // The call that failed; empty: none has.
  const std::string& failed() const { return failed_; }
  // What the system said.
  int error() const { return error_; }

  class Scope {
   public:
    // Null: calls are the system's.
    explicit Scope(Scarcity* scarcity);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Scarcity* before_;
  };

  // For scarcity.cc: counts a call of this thread. True: it fails, and errno says why.
  static bool Fails(const char* call, int error);

 private:
  int64_t fails_, calls_ = 0;
  std::string always_;
  std::string failed_;
  int error_ = 0;
};

}  // namespace tutti::service
