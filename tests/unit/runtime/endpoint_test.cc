#include "endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "support/ip_version6.h"
#include "tutti/base/random.h"

namespace tutti {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(IpAddress, ReadsAndWritesBothVersions) {
  struct Row {
    const char* text;
    bool is_v4;
    const char* canonical;
  };
  for (const Row& row : std::vector<Row>{{"10.1.2.3", true, "10.1.2.3"},
                                         {"0.0.0.0", true, "0.0.0.0"},
                                         {"::ffff:10.1.2.3", true, "10.1.2.3"},
                                         {"::1", false, "::1"},
                                         {"::", false, "::"},
                                         {"FD00:0:0::0001:2", false, "fd00::1:2"},
                                         {"2001:db8::a:b:c:d", false, "2001:db8::a:b:c:d"}}) {
    SCOPED_TRACE(row.text);
    const std::optional<IpAddress> address = IpAddress::Parse(row.text);
    ASSERT_TRUE(address);
    EXPECT_EQ(address->is_v4(), row.is_v4);
    EXPECT_EQ(address->ToText(), row.canonical);
  }
  EXPECT_EQ(IpAddress::Parse("10.1.2.3")->v4(), 0x0a010203u);
  for (const std::string text :
       {"", "10.1.2", "10.1.2.256", "h0", ":", ":::", "1::2::3", "[::1]", "fe80::1%lo", "::1 "})
    EXPECT_FALSE(IpAddress::Parse(text)) << text;
}

TEST(IpAddress, KnowsWhatStandsForAllAndWhatIsOfOneLink) {
  EXPECT_TRUE(IpAddress().is_any());
  EXPECT_TRUE(IpAddress::Any6().is_any());
  EXPECT_NE(IpAddress(), IpAddress::Any6());
  EXPECT_FALSE(IpAddress::Loopback6().is_any());
  EXPECT_EQ(IpAddress::Loopback6().ToText(), "::1");
  for (const std::string text : {"fe80::1", "febf:ffff::1"})
    EXPECT_TRUE(IpAddress::Parse(text)->is_of_one_link()) << text;
  for (const std::string text : {"fec0::1", "fd00::1", "::1", "169.254.0.1"})
    EXPECT_FALSE(IpAddress::Parse(text)->is_of_one_link()) << text;
}

TEST(Endpoint, TextAndWordsComeBack) {
  EXPECT_EQ((Endpoint{0x0a010203, 80}).ToText(), "10.1.2.3:80");
  EXPECT_EQ((Endpoint{IpAddress::Loopback6(), 80}).ToText(), "[::1]:80");
  Random random(7);
  for (int i = 0; i < 200; ++i) {
    const Endpoint endpoint{i % 2 == 0 ? IpAddress(static_cast<uint32_t>(random.Next()))
                                       : IpAddress::OfWords(random.Next(), random.Next()),
                            static_cast<uint16_t>(random.Next())};
    EXPECT_EQ(EndpointOfWords(ToWords(endpoint).data()), endpoint);
    EXPECT_EQ(IpAddress::Parse(endpoint.AddressText()), endpoint.address);
    EXPECT_EQ(IpAddress::Of(endpoint.address.bytes()), endpoint.address);
  }
}

TEST(AddressesOf, NamesAndTextWithoutThoseOfOneLink) {
  EXPECT_THAT(AddressesOf("10.1.2.3").value(), testing::ElementsAre(IpAddress(0x0a010203)));
  EXPECT_THAT(AddressesOf("::1").value(), testing::ElementsAre(IpAddress::Loopback6()));
  EXPECT_THAT(AddressesOf("localhost").value(), testing::AnyOf(Contains(IpAddress(INADDR_LOOPBACK)),
                                                               Contains(IpAddress::Loopback6())));
  const auto nobody = AddressesOf("no.such.host.invalid");
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(nobody.error().message, HasSubstr("no address of host 'no.such.host.invalid': "));
  EXPECT_THAT(AddressesOf("fe80::1").error().message, HasSubstr("only addresses of one link"));
}

// Both ends of a connection to `to`, as sockets tell them.
void ExpectEnds(int listener, const Endpoint& to) {
  SCOPED_TRACE(to.ToText());
  const int client = TcpSocket(to);
  ASSERT_EQ(ConnectTo(client, to), 0) << std::strerror(errno);
  pollfd comes{.fd = listener, .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&comes, 1, 60'000), 1);
  const int server = accept(listener, nullptr, nullptr);
  EXPECT_EQ(RemoteEndOf(client), to);
  EXPECT_EQ(LocalEndOf(server), to);
  EXPECT_EQ(RemoteEndOf(server), LocalEndOf(client));
  close(client);
  close(server);
}

TEST(ListenAt, EachVersionAndBothAtOnce) {
  Endpoint v4;
  int listener = ListenAt(v4);
  ASSERT_GE(listener, 0);
  ExpectEnds(listener, v4);
  close(listener);
  if (!HasIpVersion6()) GTEST_SKIP() << "no IP version 6 here: " << std::strerror(errno);
  Endpoint v6{IpAddress::Loopback6(), 0};
  listener = ListenAt(v6);
  ASSERT_GE(listener, 0);
  ExpectEnds(listener, v6);
  close(listener);
  Endpoint both{IpAddress::Any6(), 0};
  listener = ListenAt(both);
  ASSERT_GE(listener, 0);
  ExpectEnds(listener, {INADDR_LOOPBACK, both.port});
  ExpectEnds(listener, {IpAddress::Loopback6(), both.port});
  close(listener);
}

TEST(BindTo, AnyAddressIsThatOfTheSocketsVersion) {
  if (!HasIpVersion6()) GTEST_SKIP() << "no IP version 6 here: " << std::strerror(errno);
  Endpoint at{IpAddress::Loopback6(), 0};
  const int listener = ListenAt(at);
  const int client = TcpSocket(at);
  ASSERT_EQ(BindTo(client, {INADDR_ANY, 0}), 0) << std::strerror(errno);
  EXPECT_EQ(ConnectTo(client, at), 0) << std::strerror(errno);
  EXPECT_EQ(LocalEndOf(client).address, IpAddress::Loopback6());
  close(client);
  close(listener);
}

}  // namespace
}  // namespace tutti
