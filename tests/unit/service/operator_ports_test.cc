// What operators' tools meet: texts of metrics and RAS by hand, who may see what, and listeners without descriptors.
#include "operator_ports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "acceptor.h"
#include "running_daemon.h"
#include "support/sanitizers.h"

namespace tutti::service {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// --- Metrics -------------------------------------------------------------------------------------

TEST(PrometheusTextTest, ByHand) {
  PrometheusText page;
  page.Family("a_total", "counter", "What it counts");
  page.Add({{"tenant", "b\"l\\u\ne"}, {"kind", "all-reduce"}}, 3);
  page.Add({}, 0.5);
  EXPECT_EQ(page.text(),
            "# HELP a_total What it counts\n# TYPE a_total counter\n"
            "a_total{tenant=\"b\\\"l\\\\u\\ne\",kind=\"all-reduce\"} 3\na_total 0.5\n");
}

TEST(PrometheusTextTest, BucketsOfHistogramsGrow) {
  Histogram histogram;
  for (const double seconds : {1e-6, 1e-5, 0.2, 100.0}) histogram.Add(seconds);
  PrometheusText page;
  page.Family("h", "histogram", "x");
  page.Add({{"a", "b"}}, histogram);
  for (const char* line : {"h_bucket{a=\"b\",le=\"1e-05\"} 2\n", "h_bucket{a=\"b\",le=\"0.1\"} 2\n",
                           "h_bucket{a=\"b\",le=\"0.25\"} 3\n", "h_bucket{a=\"b\",le=\"10\"} 3\n",
                           "h_bucket{a=\"b\",le=\"+Inf\"} 4\n", "h_count{a=\"b\"} 4\n"})
    EXPECT_THAT(page.text(), HasSubstr(line));
}

TEST(MetricsTest, SizesAreInWholeUnits) {
  for (const auto& [bytes, text] :
       std::vector<std::pair<int64_t, const char*>>{{0, "0-1B"},
                                                    {999, "999-1000B"},
                                                    {1000, "1-2KB"},
                                                    {134'217'728, "134-135MB"},
                                                    {4'294'967'296, "4-5GB"},
                                                    {int64_t{5} << 50, "5629-5630TB"}})
    EXPECT_EQ(Text(SizeOfMessage(bytes)), text);
}

TEST(MetricsTest, MeansAreOfTheNewestWindowsAndSizesAreFew) {
  constexpr int64_t kWindow = CommunicatorMetrics::kWindowNs;
  constexpr auto kAllReduce = static_cast<size_t>(CollectiveKind::kAllReduce);
  CommunicatorMetrics metrics;
  const auto add = [&](int64_t completed_ns, int64_t ns, int64_t bytes) {
    metrics.Add({.kind = kAllReduce,
                 .rank = 1,
                 .num_ranks = 4,
                 .bytes = bytes,
                 .posted_ns = completed_ns - ns,
                 .launched_ns = completed_ns - ns,
                 .completed_ns = completed_ns});
  };
  add(10 * kWindow + 1000, 1000, 2000);  // 2 GB/s, busbw 1.5 times that
  add(10 * kWindow + 9000, 4000, 2000);  // 0.5 GB/s
  const CommunicatorMetrics::Key key{1, kAllReduce, "2-3KB"};
  const auto means = metrics.MeansAt(11 * kWindow);
  ASSERT_EQ(means.count(key), 1u);
  EXPECT_DOUBLE_EQ(means.at(key).microseconds, 2.5);
  EXPECT_DOUBLE_EQ(means.at(key).bus_gbs, 1.5 * (2 + 0.5) / 2);
  EXPECT_TRUE(metrics.MeansAt(12 * kWindow).empty());
  add(11 * kWindow + 10, 8000, 2000);
  EXPECT_DOUBLE_EQ(metrics.MeansAt(11 * kWindow + 20).at(key).microseconds, 13.0 / 3);
  // New sizes for ever: the rest is one.
  for (int64_t size = 0; size < 1000; ++size) add(11 * kWindow + 100, 10, size * 1'000'000);
  EXPECT_LE(metrics.MeansAt(11 * kWindow + 200).size(), CommunicatorMetrics::kMaxSizes + 1);
  EXPECT_EQ(metrics.counts()[kAllReduce].operations, 1003);
  EXPECT_EQ(metrics.by_rank().at(1)[kAllReduce], 1003);
}

TEST(HttpTest, OneRowARule) {
  struct Row {
    const char* bytes;
    HttpState state;
    const char* path;
    const char* bearer;
  };
  for (const Row& row : std::vector<Row>{
           {"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n", HttpState::kComplete, "/metrics", ""},
           {"GET /metrics?x=1 HTTP/1.0\n\n", HttpState::kComplete, "/metrics", ""},
           {"GET /m HTTP/1.1\r\naUTHORIZATION:  bearer s e\r\n\r\n", HttpState::kComplete, "/m",
            "s e"},
           {"GET /m HTTP/1.1\r\nAuthorization: Basic xyz\r\n\r\n", HttpState::kComplete, "/m", ""},
           {"GET /metrics HTTP/1.1\r\nHost", HttpState::kIncomplete, "", ""},
           {"", HttpState::kIncomplete, "", ""},
           {"GET /metrics\r\n\r\n", HttpState::kBad, "", ""},
           {"GET /metrics SMTP/1.1\r\n\r\n", HttpState::kBad, "", ""},
           {"GET /m HTTP/1.1\r\nno colon\r\n\r\n", HttpState::kBad, "", ""},
           {"\r\n\r\n", HttpState::kBad, "", ""}}) {
    HttpRequest request;
    EXPECT_EQ(ParseHttp(row.bytes, request), row.state) << row.bytes;
    if (row.state != HttpState::kComplete) continue;
    EXPECT_EQ(request.path, row.path);
    EXPECT_EQ(request.bearer, row.bearer);
  }
  HttpRequest request;
  EXPECT_EQ(ParseHttp(std::string(9000, 'x'), request), HttpState::kBad);
  std::string out, in = "DELETE /metrics HTTP/1.1\r\n\r\n";
  HttpProtocol protocol([](const HttpRequest&) { return HttpAnswer{.body = "b\n"}; });
  EXPECT_FALSE(protocol.Hear(in, out));
  EXPECT_THAT(out, StartsWith("HTTP/1.1 405 "));
  out.clear();
  in = "HEAD / HTTP/1.1\r\n\r\n";
  EXPECT_FALSE(protocol.Hear(in, out));
  EXPECT_THAT(out, HasSubstr("Content-Length: 2\r\n"));
  EXPECT_THAT(out, Not(HasSubstr("b\n")));
}

// --- Who sees what -------------------------------------------------------------------------------

TEST(ViewerTest, OwnersOfConnectionsByTheKernelsTable) {
  const std::string table =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
      "inode\n"
      "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
      "1 1\n"
      "   1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 "
      "2 1\n"
      "   2: 0100007F:C351 0100007F:1F90 06 00000000:00000000 00:00000000 00000000     0        0 "
      "3 1\n"
      "   3: 0100007F:C352 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  x1000        0 "
      "2 1\n"
      "   4: nonsense\n";
  const Endpoint server{INADDR_LOOPBACK, 8080};
  EXPECT_EQ(OwnerOfConnection(table, {INADDR_LOOPBACK, 50000}, server), 1000u);
  // Closing: the kernel shows it as root's. Neither does a broken row have an owner, nor one that is not there.
  for (const uint16_t port : {uint16_t{50001}, uint16_t{50002}, uint16_t{50003}})
    EXPECT_EQ(OwnerOfConnection(table, {INADDR_LOOPBACK, port}, server), std::nullopt);
  EXPECT_EQ(OwnerOfConnection("", server, server), std::nullopt);
}

TEST(ViewerTest, ThisHostsConnectionsHaveAUser) {
  Endpoint at;
  const ipc::Descriptor listener(ListenAt(at));
  const ipc::Descriptor client(TcpSocket(at));
  ASSERT_EQ(ConnectTo(client.fd(), at), 0);
  const ipc::Descriptor server(accept(listener.fd(), nullptr, nullptr));
  const Caller caller = WhoCalls(server.fd());
  EXPECT_TRUE(caller.is_of_this_host);
  EXPECT_EQ(caller.user, getuid());
}

TEST(ViewerTest, TenantsSeeThemselves) {
  const TenantOptions blue{.name = "blue", .users = {1000}},
      red{.name = "red", .users = {1000, 1001}},
      secret{.name = "secret", .token = "t", .users = {1000}};
  const std::vector<const TenantOptions*> known = {&blue, &red, &secret};
  const PortOptions port{.users = {7}};
  const auto view = [&](const Caller& caller, const PortOptions& at) {
    return ViewerOf(caller, at, 55, known);
  };
  for (const uint32_t user : {0u, 55u, 7u}) EXPECT_TRUE(view({true, user}, port).sees_all);
  EXPECT_THAT(view({true, 1000u}, port).tenants, ElementsAre("blue", "red"));
  EXPECT_FALSE(view({true, 1000u}, port).sees_all);
  EXPECT_THAT(view({true, 1001u}, port).tenants, ElementsAre("red"));
  EXPECT_TRUE(view({true, 1002u}, port).sees_nothing());
  EXPECT_TRUE(view({true, std::nullopt}, port).sees_nothing());
  EXPECT_TRUE(view({false, std::nullopt}, port).sees_nothing());
  EXPECT_TRUE(view({false, std::nullopt}, {.remote = true}).sees_all);
}

// --- RAS -----------------------------------------------------------------------------------------

RasReport SmallReport() {
  RasCommunicator of{
      .label = "c-00000007", .tenant = "blue", .state = "active", .hash = 7, .size = 3};
  of.ranks.push_back({.rank = 0,
                      .host = "a",
                      .process = 10,
                      .device = 0,
                      .is_active = true,
                      .issued = 2,
                      .completed = 1,
                      .waits_for = "all-reduce of 8 float (sum)"});
  of.missing.push_back(
      {.rank = 2, .host = "b", .why_missing = "has called 1 collectives, others 2"});
  return {.version = "0.1.0", .host = "a", .communicators = {of}};
}

TEST(RasTest, ADialogue) {
  RasProtocol protocol(SmallReport, [](const std::string& tenant) { return tenant == "blue"; });
  std::string out;
  const auto say = [&](std::string in) {
    out.clear();
    return protocol.Hear(in, out);
  };
  for (const auto& [line, answer] : std::vector<std::pair<const char*, const char*>>{
           {"CLIENT PROTOCOL 2\n", "SERVER PROTOCOL 2\n"},
           {"timeout 5\r\n", "OK\n"},
           {"TIMEOUT 0.5\n", "OK\n"},
           {"TIMEOUT -1\n", "ERROR: Invalid timeout value -1\n"},
           {"TIMEOUT nan\n", "ERROR: Invalid timeout value nan\n"},
           {"TIMEOUT 5x\n", "ERROR: Invalid timeout value 5x\n"},
           {"SET FORMAT yaml\n", "ERROR: Invalid format yaml\n"},
           {"FROB\x01\n", "ERROR: Unknown command FROB?\n"},
           {"MONITOR lifecycle, trace\n", "OK\n"},
           {"MONITOR bogus\n", "ERROR: Invalid event group 'bogus'\n"},
           {"\n", "ERROR: Unknown command \n"},
           {"STAT", ""}}) {
    EXPECT_TRUE(say(line));
    EXPECT_EQ(out, answer);
  }
  std::string in = "SET FORMAT json\nSTATUS\nTIMEOUT 1\n";
  out.clear();
  EXPECT_FALSE(protocol.Hear(in, out));
  EXPECT_THAT(out, StartsWith("OK\n{"));
  EXPECT_FALSE(say(std::string(5000, 'x')));
  // Events of other tenants are not told.
  out.clear();
  protocol.Tell({.event = "PEER_DEAD", .tenant = "red", .process = 4}, out);
  EXPECT_EQ(out, "");
  protocol.Tell({.event = "PEER_DEAD", .tenant = "blue", .host = "a", .process = 4, .details = "d"},
                out);
  const auto event = nlohmann::json::parse(out);
  EXPECT_EQ(event["peer"]["pid"], 4);
  EXPECT_EQ(event["group"], "LIFECYCLE");
}

TEST(RasTest, ReportsNameWhoIsMissing) {
  const auto json = nlohmann::json::parse(RasJson(SmallReport()));
  EXPECT_EQ(json["communicators_count"], 1);
  const auto& of = json["communicators"][0];
  EXPECT_EQ(of["hash"], "0x7");
  EXPECT_EQ(of["size"], 3);
  EXPECT_EQ(of["ranks_count"], 1);
  EXPECT_EQ(of["missing_ranks_count"], 1);
  EXPECT_EQ(of["ranks"][0]["status"]["async_error"], 0);
  EXPECT_EQ(of["ranks"][0]["collective_counts"]["AllReduce"], 0);
  EXPECT_EQ(of["missing_ranks"][0]["status"]["unresponsive"], true);
  const std::string text = RasText(SmallReport(), false);
  EXPECT_THAT(text, HasSubstr("c-00000007: rank 2 (b) has called 1 collectives, others 2\n"));
  EXPECT_THAT(text, HasSubstr("1 of 2 operations, in all-reduce of 8 float (sum)\n"));
  EXPECT_THAT(text, HasSubstr("INCOMPLETE"));
}

// --- Descriptors that run out --------------------------------------------------------------------

TEST(AcceptorTest, WithoutDescriptorsItRestsUntilTheNextTick) {
  if (test_support::kHasAddressSanitizer)
    GTEST_SKIP() << "the sanitizers' look at virtual calls needs a descriptor itself";
  auto loop = EventLoop::Make();
  ASSERT_TRUE(loop);
  Endpoint at;
  std::vector<ipc::Descriptor> accepted;
  Acceptor acceptor(**loop, ipc::Descriptor(ListenAt(at)), "",
                    [&](ipc::Descriptor socket) { accepted.push_back(std::move(socket)); });
  const ipc::Descriptor client(TcpSocket(at));
  ASSERT_EQ(ConnectTo(client.fd(), at), 0);
  const int next = dup(0);  // the lowest that is free
  close(next);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{static_cast<rlim_t>(next), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_TRUE((*loop)->Poll(1000));
  EXPECT_TRUE(acceptor.rests());
  EXPECT_FALSE((*loop)->Poll(0));  // it is not reported again
  acceptor.Tick();
  EXPECT_TRUE((*loop)->Poll(1000));
  EXPECT_TRUE(acceptor.rests());
  EXPECT_EQ(acceptor.times_without_descriptors(), 2);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  acceptor.Tick();
  EXPECT_TRUE((*loop)->Poll(1000));
  EXPECT_EQ(accepted.size(), 1u);
  EXPECT_FALSE(acceptor.rests());
}

TEST(MetricsTest, RoutesAreNamedByTheirPorts) {
  PathBytes bytes;
  int64_t& first = bytes.Of({50'000, 1'000});
  bytes.Of({}) += 1;
  bytes.Of({60'000, 1}) += 3;
  first += 7;  // wherever others were put since then
  std::string all;
  for (const auto& [route, count] : bytes.all())
    all += PathBytes::Name(route) + " " + std::to_string(count) + "\n";
  EXPECT_EQ(all, "any 1\n50000-50999 7\n60000-60000 3\n");
}

// --- A daemon's ----------------------------------------------------------------------------------

// All that comes until the other end closes.
std::string AskAt(const std::string& path, const std::string& request) {
  const auto connected = ipc::Connect(path, ipc::SocketKind::kStream);
  if (!connected) return connected.error().message;
  EXPECT_EQ(send(connected->fd(), request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string answer;
  std::array<char, 4096> part;
  for (ssize_t size = 0; (size = recv(connected->fd(), part.data(), part.size(), 0)) > 0;)
    answer.append(part.data(), static_cast<size_t>(size));
  return answer;
}

TEST(OperatorPortsTest, TenantsSeeNoOthersNumbersAndNoNetwork) {
  const uint32_t user = getuid();
  RunningDaemon daemon("ports", {{.name = "blue", .token = "b"}, {.name = "red", .users = {user}}},
                       false, [](DaemonOptions& options) {
                         const std::string folder =
                             options.socket.substr(0, options.socket.rfind('/'));
                         options.metrics = {.listen = folder + "/metrics", .token = "provider"};
                         options.ras = {.listen = folder + "/ras"};
                       });
  RunRanks({&daemon}, 2, [](Communicator& communicator) {
    const std::vector<float> input = Ramp(100, 1);
    std::vector<float> output(100);
    ASSERT_TRUE(communicator.AllReduce(input.data(), output.data(), 100, DataType::kFloat32,
                                       ReduceOp::kSum));
  });
  const auto scrape = [&](const std::string& token) {
    return AskAt(daemon.folder() + "/metrics",
                 "GET /metrics HTTP/1.1\r\n" +
                     (token.empty() ? "" : "Authorization: Bearer " + token + "\r\n") + "\r\n");
  };
  const std::string all = scrape("provider");
  EXPECT_THAT(all, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(all, HasSubstr("tutti_tenant_operations_total{tenant=\"red\"} 2\n"));
  EXPECT_THAT(all,
              HasSubstr("tutti_collective_seconds_count{tenant=\"red\",kind=\"all-reduce\"} 2\n"));
  EXPECT_THAT(all, HasSubstr("tutti_info{"));
  const std::string own = scrape("b");
  EXPECT_THAT(own, HasSubstr("tutti_tenant_operations_total{tenant=\"blue\"} 0\n"));
  for (const char* foreign :
       {"red", "tutti_info", "tutti_connections", "tutti_uptime", "tutti_path_bytes"})
    EXPECT_THAT(own, Not(HasSubstr(foreign)));
  EXPECT_THAT(scrape("guess"), StartsWith("HTTP/1.1 401 "));
  // The test's user is the daemon's.
  EXPECT_THAT(AskAt(daemon.folder() + "/ras", "CLIENT PROTOCOL 2\nSTATUS\n"),
              StartsWith("SERVER PROTOCOL 2\nTutti version "));
  EXPECT_EQ(daemon.Ask("status")["ras"], daemon.folder() + "/ras");
}

// What ranks send to those of another daemon, by the ports that the strategy gives; nothing of what they send within the host.
TEST(OperatorPortsTest, BytesToOtherHostsAreCountedByRoute) {
  const auto listens = [](DaemonOptions& options) {
    options.metrics = {.listen = options.socket.substr(0, options.socket.rfind('/')) + "/metrics",
                       .token = "provider"};
  };
  RunningDaemon first("path-a", {}, true, listens), second("path-b", {}, true, listens);
  const auto bytes = [&](const std::string& route) {
    const std::string page =
        AskAt(first.folder() + "/metrics",
              "GET /metrics HTTP/1.1\r\nAuthorization: Bearer provider\r\n\r\n");
    const std::string sample = "tutti_path_bytes_total{route=\"" + route + "\"} ";
    const size_t at = page.find(sample);
    return at == std::string::npos ? 0 : std::stoll(page.substr(at + sample.size()));
  };
  constexpr size_t kCount = 25'000;
  const auto reduce = [](Communicator& communicator) {
    const std::vector<float> input = Ramp(kCount, 1);
    std::vector<float> output(kCount);
    ASSERT_TRUE(communicator.AllReduce(input.data(), output.data(), kCount, DataType::kFloat32,
                                       ReduceOp::kSum));
  };
  RunRanks({&first}, 2, reduce);
  EXPECT_EQ(bytes("any"), 0);
  std::atomic<bool> is_changed = false;
  std::thread changes;
  RunRanks({&first, &second}, 2, [&](Communicator& communicator) {
    reduce(communicator);
    if (communicator.rank() == 0) {
      EXPECT_GE(bytes("any"), static_cast<int64_t>(kCount * sizeof(float)));
      changes = std::thread([&] {
        std::string running;  // and not the one before, which may still be there
        const nlohmann::json all = first.Ask("comms");
        for (const nlohmann::json& each : all["communicators"])
          if (!each["local_ranks"][0]["left"].get<bool>()) running = each["communicator"];
        const nlohmann::json changed =
            first.Ask({{"command", "reconfigure"},
                       {"communicator", running},
                       {"flows", {{{"from", 0}, {"to", 1}, {"ports", {29'000, 300}}}}}});
        EXPECT_FALSE(changed.contains("error")) << changed;
        is_changed = true;
      });
    }
    // A change waits for ranks that are an operation behind, so that both go on meanwhile.
    for (int32_t knows = 0; knows < 2;) {
      const int32_t mine = is_changed ? 1 : 0;
      ASSERT_TRUE(communicator.AllReduce(&mine, &knows, 1, DataType::kInt32, ReduceOp::kSum));
    }
    reduce(communicator);
  });
  changes.join();
  EXPECT_GE(bytes("29000-29299"), static_cast<int64_t>(kCount * sizeof(float)));
}

}  // namespace
}  // namespace tutti::service
