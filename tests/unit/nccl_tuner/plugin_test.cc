// The plug-in as NCCL takes it: opened by name, each version of the interface. What the structs
// look like is written down here a second time, from the host's side.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "support/text.h"

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kAllGather = 2, kAllReduce = 4, kAllToAll = 8;
constexpr int kWarn = 2, kInfo = 3;

struct Message {
  int level;
  unsigned long flags;
  std::string file;
  int line;
  std::string text;
};
std::vector<Message>& Log() {
  static std::vector<Message> messages;
  return messages;
}

extern "C" void HostLog(int level, unsigned long flags, const char* file, int line,
                        const char* format, ...) {
  std::array<char, 2000> text{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  Log().push_back({level, flags, file, line, text.data()});
}

using HostLogger = void (*)(int, unsigned long, const char*, int, const char*, ...);
using GetInfo = int (*)(void*, int, size_t, int, float**, int, int, int, int*);
struct HostV4 {
  const char* name;
  int (*init)(size_t, size_t, HostLogger, void**);
  GetInfo info;
  int (*destroy)(void*);
};
struct HostV5 {
  const char* name;
  int (*init)(void**, uint64_t, size_t, size_t, HostLogger, void*, void*);
  GetInfo info;
  int (*finalize)(void*);
};
struct HostV6 {
  HostV5 as_before;
  int (*chunk_size)(void*, int, size_t, int, int, int, size_t*);
};

constexpr int kAlgorithms = 7, kProtocols = 3;
using Times = std::array<std::array<float, kProtocols>, kAlgorithms>;

struct Answer {
  Times times;
  int channels;
  friend bool operator==(const Answer&, const Answer&) = default;
};

// A communicator of a host that speaks one version.
class Host {
 public:
  Host(int version, size_t ranks, size_t nodes) : version_(version) {
    library_ = dlopen(TUTTI_NCCL_TUNER, RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library_, nullptr) << dlerror();
    symbol_ = dlsym(library_, ("ncclTunerPlugin_v" + std::to_string(version)).c_str());
    EXPECT_NE(symbol_, nullptr) << version;
    std::array<int, 3> domains{1, 8, 8};
    std::vector<double> constants(1000, 1.5);
    const int failed = version == 4 ? V4().init(ranks, nodes, HostLog, &context_)
                                    : V5().init(&context_, 77, ranks, nodes, HostLog,
                                                domains.data(), constants.data());
    EXPECT_EQ(failed, 0);
    EXPECT_EQ(constants, std::vector<double>(1000, 1.5));
  }
  ~Host() {
    EXPECT_EQ(version_ == 4 ? V4().destroy(context_) : V5().finalize(context_), 0);
    EXPECT_EQ(dlclose(library_), 0);
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  std::string name() const { return version_ == 4 ? V4().name : V5().name; }
  bool has_chunk_size() const { return static_cast<const HostV6*>(symbol_)->chunk_size != nullptr; }

  Answer Ask(int function, size_t bytes, Times times, int algorithms = kAlgorithms) const {
    Answer answer{times, -7};
    const GetInfo info = version_ == 4 ? V4().info : V5().info;
    EXPECT_EQ(info(context_, function, bytes, 1, reinterpret_cast<float**>(answer.times.data()),
                   algorithms, kProtocols, 0, &answer.channels),
              0);
    return answer;
  }

 private:
  const HostV4& V4() const { return *static_cast<const HostV4*>(symbol_); }
  const HostV5& V5() const { return *static_cast<const HostV5*>(symbol_); }
  int version_;
  void *library_ = nullptr, *symbol_ = nullptr, *context_ = nullptr;
};

Times SomeTimes() {
  Times times{};
  for (size_t a = 0; a < kAlgorithms; ++a)
    for (size_t p = 0; p < kProtocols; ++p)
      times[a][p] = static_cast<float>(10 + a) + static_cast<float>(kProtocols - p);
  times[6] = {-1, -1, -1};
  return times;
}

class NcclTunerPluginTest : public testing::Test {
 protected:
  void SetUp() override { Log().clear(); }
  void TearDown() override {
    unsetenv("TUTTI_NCCL_TABLE");
    std::remove(path_.c_str());
  }
  void Write(const std::string& text) {
    std::ofstream(path_) << text;
    setenv("TUTTI_NCCL_TABLE", path_.c_str(), 1);
  }
  std::string path_ = tutti::test_support::OwnPath("nccl_table.txt");
};

TEST_F(NcclTunerPluginTest, EveryVersionOfTheInterfaceGivesTheSameAnswers) {
  Write(
      "tutti-nccl-table 1\n"
      "allreduce 8 1 0 65535 tree ll *\n"
      "allreduce 8 1 65536 1048575 ring simple 16\n"
      "allreduce 8 1 1048576 * ring * *\n"
      "allgather * * 0 * pat * *\n"
      "end\n");
  for (const int version : {4, 5, 6, 7}) {
    SCOPED_TRACE(version);
    const Host host(version, 8, 1);
    EXPECT_EQ(host.name(), "Tutti");
    if (version >= 6) {
      EXPECT_FALSE(host.has_chunk_size());
    }
    Answer expected{SomeTimes(), -7};
    EXPECT_EQ(host.Ask(kAllToAll, 5, SomeTimes()), expected);
    EXPECT_EQ(host.Ask(kAllGather, 5, SomeTimes()), expected);  // impossible: stays so
    expected.times[0][0] = 0;
    EXPECT_EQ(host.Ask(kAllReduce, 65535, SomeTimes()), expected);
    expected = {SomeTimes(), 16};
    expected.times[1][2] = 0;
    EXPECT_EQ(host.Ask(kAllReduce, 65536, SomeTimes()), expected);
    // Any protocol: the one that is fastest with a ring, and possible.
    expected = {SomeTimes(), -7};
    expected.times[1] = {12, -1, 13};
    Times times = expected.times;
    expected.times[1][0] = 0;
    EXPECT_EQ(host.Ask(kAllReduce, size_t{1} << 40, times), expected);
    // Fewer algorithms than the table names.
    EXPECT_EQ(host.Ask(kAllReduce, size_t{1} << 40, SomeTimes(), 1), (Answer{SomeTimes(), -7}));
  }
  ASSERT_EQ(Log().size(), 4U);
  EXPECT_EQ(Log()[0].level, kInfo);
  EXPECT_THAT(Log()[0].text, HasSubstr("4 rows, 4 ranges for 8 ranks on 1 nodes"));
  EXPECT_EQ(Log()[0].text, Log()[3].text);
}

TEST_F(NcclTunerPluginTest, OtherCommunicatorsKeepTheChoicesOfNccl) {
  Write("tutti-nccl-table 1\nallreduce 8 1 0 * tree ll *\nend\n");
  const Host host(5, 16, 2);
  EXPECT_EQ(host.Ask(kAllReduce, 1, SomeTimes()), (Answer{SomeTimes(), -7}));
}

TEST_F(NcclTunerPluginTest, BadTablesChangeNothingAndTheLogSaysWhere) {
  Write("tutti-nccl-table 1\nallreduce 8 1 0 * tree ll *\nallreduce 8 1 0 * cube ll *\nend\n");
  for (const int version : {4, 5, 6, 7}) {
    SCOPED_TRACE(version);
    Log().clear();
    const Host host(version, 8, 1);
    EXPECT_EQ(host.Ask(kAllReduce, 1, SomeTimes()), (Answer{SomeTimes(), -7}));
    ASSERT_EQ(Log().size(), 1U);
    EXPECT_EQ(Log()[0].level, kWarn);
    EXPECT_EQ(Log()[0].flags, 0x40U);
    EXPECT_EQ(Log()[0].file, path_);
    EXPECT_EQ(Log()[0].line, 3);
    EXPECT_THAT(Log()[0].text, HasSubstr(path_ + ":3: unknown algorithm 'cube'"));
    EXPECT_THAT(Log()[0].text, HasSubstr("the choices of NCCL are not changed"));
  }
}

TEST_F(NcclTunerPluginTest, WithoutATableNothingIsChanged) {
  {
    const Host host(5, 8, 1);
    EXPECT_EQ(host.Ask(kAllReduce, 1, SomeTimes()), (Answer{SomeTimes(), -7}));
  }
  setenv("TUTTI_NCCL_TABLE", "/no/such/table", 1);
  {
    const Host host(4, 8, 1);
    EXPECT_EQ(host.Ask(kAllReduce, 1, SomeTimes()), (Answer{SomeTimes(), -7}));
  }
  setenv("TUTTI_NCCL_TABLE", "/", 1);  // a folder
  const Host host(7, 8, 1);
  ASSERT_EQ(Log().size(), 3U);
  EXPECT_THAT(Log()[0].text, HasSubstr("TUTTI_NCCL_TABLE names no table"));
  EXPECT_THAT(Log()[1].text, HasSubstr("/no/such/table: cannot be read (TUTTI_NCCL_TABLE)"));
  EXPECT_THAT(Log()[2].text, HasSubstr("/: cannot be read"));
}

TEST_F(NcclTunerPluginTest, CommunicatorsHaveContextsOfTheirOwn) {
  Write("tutti-nccl-table 1\nallreduce 8 * 0 * tree ll *\nallreduce 4 * 0 * ring ll *\nend\n");
  const Host eight(7, 8, 1), four(7, 4, 1);
  EXPECT_EQ(eight.Ask(kAllReduce, 1, SomeTimes()).times[0][0], 0);
  EXPECT_EQ(four.Ask(kAllReduce, 1, SomeTimes()).times[1][0], 0);
  EXPECT_NE(four.Ask(kAllReduce, 1, SomeTimes()).times[0][0], 0);
}

}  // namespace
