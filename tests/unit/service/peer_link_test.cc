#include "peer_link.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tutti/base/random.h"

namespace tutti::service {
namespace {

TEST(PeerFrameTest, ComesBackAsItWas) {
  for (const PeerFrame& frame :
       {PeerFrame{.kind = PeerKind::kJoin, .words = {1, -2, INT64_MIN}, .texts = {"a", "", "bc"}},
        PeerFrame{.kind = PeerKind::kFailed},
        PeerFrame{
            .kind = PeerKind::kPrepare, .words = {7}, .texts = {std::string(100'000, 'x')}}}) {
    const auto back = Decode(Encode(frame));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->kind, frame.kind);
    EXPECT_EQ(back->words, frame.words);
    EXPECT_EQ(back->texts, frame.texts);
  }
}

// Cut anywhere, longer, or with any byte changed: no frame, or one that is written the same way.
TEST(PeerFrameTest, NoWrongBytesAreTaken) {
  const std::string right =
      Encode({.kind = PeerKind::kBarrier, .words = {1, 2, 3}, .texts = {"why"}});
  for (size_t size = 0; size < right.size(); ++size) EXPECT_FALSE(Decode(right.substr(0, size)));
  EXPECT_FALSE(Decode(right + "x"));
  Random random(3);
  for (int i = 0; i < 10'000; ++i) {
    std::string wrong = right;
    wrong[random.Below(wrong.size())] = static_cast<char>(random.Below(256));
    const auto frame = Decode(wrong);
    EXPECT_TRUE(!frame || Encode(*frame) == wrong);
  }
}

class Links : public testing::Test {
 protected:
  void SetUp() override {
    auto made = EventLoop::Make();
    ASSERT_TRUE(made);
    loop_ = std::move(*made);
  }
  void RunUntil(const std::function<bool()>& done) {
    for (int look = 0; look < 1000 && !done(); ++look) loop_->Poll(10);
    ASSERT_TRUE(done());
  }
  std::unique_ptr<EventLoop> loop_;
};

TEST_F(Links, FramesSentBeforeItIsThereFollowAndTheEndIsTold) {
  Endpoint at;
  const ipc::Descriptor listener(ListenAt(at));
  ASSERT_TRUE(listener.is_open());
  std::vector<std::string> heard;
  std::string lost;
  auto link = PeerLink::Connect(
      *loop_, at,
      {.frame = [](const PeerFrame&) {}, .lost = [&](const std::string& why) { lost = why; }});
  ASSERT_NE(link, nullptr);
  // More than the sockets hold.
  for (int i = 0; i < 20; ++i)
    link->Send(
        {.kind = PeerKind::kFailed, .texts = {std::string(1 << 20, static_cast<char>('a' + i))}});
  std::unique_ptr<PeerLink> other;
  loop_->Add(listener.fd(), 1, [&](uint32_t) {
    const int fd = accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0)
      other = std::make_unique<PeerLink>(
          *loop_, fd,
          PeerLink::Handlers{
              .frame = [&](const PeerFrame& frame) { heard.push_back(frame.texts[0]); },
              .lost = [](const std::string&) {}});
  });
  RunUntil([&] { return heard.size() == 20; });
  for (size_t i = 0; i < heard.size(); ++i)
    EXPECT_EQ(heard[i], std::string(1 << 20, static_cast<char>('a' + i)));
  other.reset();
  RunUntil([&] { return !lost.empty(); });
  EXPECT_NE(lost.find("closed the connection"), std::string::npos) << lost;
}

TEST_F(Links, NobodyThereIsTold) {
  Endpoint at;
  { const ipc::Descriptor listener(ListenAt(at)); }  // its port is free again
  std::string lost;
  auto link = PeerLink::Connect(
      *loop_, at,
      {.frame = [](const PeerFrame&) {}, .lost = [&](const std::string& why) { lost = why; }});
  ASSERT_NE(link, nullptr);
  RunUntil([&] { return !lost.empty(); });
  EXPECT_NE(lost.find("nobody could be reached at 127.0.0.1:"), std::string::npos) << lost;
}

}  // namespace
}  // namespace tutti::service
