#include "redial.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace tutti::service {
namespace {

int Waiting(const ipc::Descriptor& listener) {
  int waiting = 0;
  while (true) {
    const ipc::Descriptor came(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!came.is_open()) return waiting;
    ++waiting;
  }
}

TEST(RedialTest, TheFirstThatIsMadeIsTakenAndTheOthersAreClosed) {
  Endpoint at;
  const ipc::Descriptor listener(ListenAt(at));
  Redial redial;
  EXPECT_FALSE(redial.has_begun());
  redial.Begin(at, 4, 7);
  EXPECT_EQ(redial.since_ns(), 7);
  const ipc::Descriptor made = redial.Take();
  ASSERT_TRUE(made.is_open());
  EXPECT_FALSE(redial.has_begun());
  EXPECT_FALSE(redial.is_under_way());
  EXPECT_EQ(Waiting(listener), 4);
  EXPECT_FALSE(redial.Take().is_open());
}

TEST(RedialTest, WhoIsNotThereIsSaid) {
  Endpoint at;
  { const ipc::Descriptor listener(ListenAt(at)); }  // its port is free again
  Redial redial;
  redial.Begin(at, 2, 0);
  while (redial.is_under_way()) EXPECT_FALSE(redial.Take().is_open());
  EXPECT_EQ(redial.error(), ECONNREFUSED);
  EXPECT_TRUE(redial.has_begun());
  redial.Close();
  EXPECT_EQ(redial.error(), 0);
}

TEST(RedialTest, WhatIsDroppedStaysUnderWayUntilItIsTriedAnew) {
  Endpoint at;
  const ipc::Descriptor listener(ListenAt(at));
  const sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog drop{1, const_cast<sock_filter*>(&nothing)};
  ASSERT_EQ(setsockopt(listener.fd(), SOL_SOCKET, SO_ATTACH_FILTER, &drop, sizeof(drop)), 0);
  Redial redial;
  redial.Begin(at, 3, 0);
  EXPECT_FALSE(redial.Take().is_open());
  EXPECT_TRUE(redial.is_under_way());
  const int none = 0;
  setsockopt(listener.fd(), SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none));
  redial.Begin(at, 3, 1);
  EXPECT_TRUE(redial.Take().is_open());
}

}  // namespace
}  // namespace tutti::service
