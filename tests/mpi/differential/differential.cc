// A differential fuzzer: calls of the collectives that Tutti takes over, drawn at random and legal,
// made twice, once by the native algorithm and once through Tutti; answers must be the same byte
// for byte, in holes and beside the buffers too. Linked before the MPI library against the library
// that programs preload, so that MPI_ calls go the way of any program's.
//
// Model       Call number k is drawn from (seed, k) alone. Calls come in batches, each on
//             communicators made for it (the world, a duplicate, the world reversed, parts in a
//             drawn order, one rank alone, now and then an intercommunicator of two halves); in
//             some batches several threads call at once, each on its own. All of the algorithms are
//             called by name; the drop-in library takes the one that TUTTI_ALLTOALLV says. A steady
//             batch keeps one communicator and one class of sizes, so that `auto` gets to try and
//             to change what serves.
// Output      A line of what was compared and how long it took; or, on the rank that finds a difference, what differs
//             and the line that repeats that batch up to the call, and the job ends.
//
//   mpirun -np 4 differential-openmpi --seed=1 --calls=20000 [--first=0] [--threads=1]
//     [--algorithms=tuna:r=2/shared] [--forms=taken-over/non-blocking/by-name/persistent]
//     [--collective=MPI_Alltoallv] [--against=messages] [--verbose]
//     [--others]: the collectives beside the all-to-alls, in bursts (burst.h)
#include <mpi.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "burst.h"
#include "call.h"
#include "waiting.h"

namespace tutti::mpi::differential {
namespace {

constexpr uint64_t kBatch = 240;  // calls
constexpr int kMaxThreads = 4;

struct Settings {
  Options options;
  uint64_t first = 0, calls = 20000;
  int threads = 1;
  bool verbose = false;  // every call is printed before it is made
  bool others = false;   // the collectives beside the all-to-alls
};

Settings settings;
int world_rank = 0, world_size = 1;
std::array<std::atomic<uint64_t>, kForms> compared;
std::array<std::atomic<uint64_t>, kBurstForms> compared_of_bursts;
// What runs, for whoever ends a job that stands still: written before the call.
char running[kMaxThreads][64];

std::string Environment() {
  std::string text;
  for (const char* name :
       {"TUTTI_ALLTOALLV", "TUTTI_RANKS_PER_NODE", "TUTTI_MPI_FILE", "TUTTI_REORDER"}) {
    if (const char* value = std::getenv(name)) text += std::string(name) + "=" + value + " ";
  }
  return text;
}

[[noreturn]] void Fail(uint64_t number, const std::string& call, const std::string& difference) {
  const uint64_t begin = std::max(settings.first, number / kBatch * kBatch);
  std::fprintf(stderr,
               "differential: call %llu on rank %d of %d: %s\n  %s\n  repeat: env %smpirun -np %d "
               "%s --seed=%llu --first=%llu --calls=%llu --threads=%d%s\n",
               static_cast<unsigned long long>(number), world_rank, world_size, difference.c_str(),
               call.c_str(), Environment().c_str(), world_size, program_invocation_name,
               static_cast<unsigned long long>(settings.options.seed),
               static_cast<unsigned long long>(begin),
               static_cast<unsigned long long>(number + 1 - begin), settings.threads,
               settings.others ? " --others" : "");
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

void SayWhatRuns(int /*signal*/) {
  for (const auto& text : running) {
    if (text[0] == '\0') continue;
    const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
    static_cast<void>(written);
  }
  _exit(1);
}

std::vector<int> WorldRanksOf(MPI_Comm communicator, bool remote) {
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Group world = MPI_GROUP_NULL;
  int size = 0;
  if (remote) {
    PMPI_Comm_remote_group(communicator, &group);
  } else {
    PMPI_Comm_group(communicator, &group);
  }
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  PMPI_Group_size(group, &size);
  std::vector<int> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<int> in_world(ranks.size());
  PMPI_Group_translate_ranks(group, size, ranks.data(), world, in_world.data());
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);
  return in_world;
}

// The communicators of one thread in one batch. A rank that is in none of a kind has a null one.
class Groups {
 public:
  // Collective.
  Groups(Random random, bool steady) {
    Add("a duplicate of the world", [&](MPI_Comm* made) { MPI_Comm_dup(MPI_COMM_WORLD, made); });
    if (steady) return;
    Split("the world reversed", 0, -world_rank);
    // A part of the world, in a drawn order; the others sit out, or are a part themselves.
    std::vector<int> order(static_cast<size_t>(world_size));
    std::iota(order.begin(), order.end(), 0);
    random.Shuffle(order);
    const auto place =
        static_cast<int>(std::find(order.begin(), order.end(), world_rank) - order.begin());
    const auto members = static_cast<int>(random.Between(1, world_size));
    const bool two = random.OneIn(2);
    Split("a part of the world", place < members ? 0 : (two ? 1 : MPI_UNDEFINED), place);
    Split("one rank", world_rank, 0);
    if (world_size > 1 && random.OneIn(3)) {
      MPI_Comm half = MPI_COMM_NULL;
      const bool upper = world_rank >= (world_size + 1) / 2;
      MPI_Comm_split(MPI_COMM_WORLD, upper ? 1 : 0, world_rank, &half);
      Add("an intercommunicator", [&](MPI_Comm* made) {
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, upper ? 0 : (world_size + 1) / 2, 1, made);
      });
      MPI_Comm_free(&half);
    }
  }
  ~Groups() {
    for (Group& each : groups_) {
      if (each.communicator != MPI_COMM_NULL) MPI_Comm_free(&each.communicator);
    }
  }
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;

  const Group& Of(Random& random) const { return random.Of(groups_); }

 private:
  template <class Make>
  void Add(const char* name, const Make& make) {
    Group group{.communicator = MPI_COMM_NULL, .name = name, .peers = {}, .inter = false};
    make(&group.communicator);
    if (group.communicator != MPI_COMM_NULL) {
      MPI_Comm_set_errhandler(group.communicator, MPI_ERRORS_RETURN);
      int inter = 0;
      MPI_Comm_test_inter(group.communicator, &inter);
      group.inter = inter != 0;
      group.peers = WorldRanksOf(group.communicator, group.inter);
    }
    groups_.push_back(group);
  }
  void Split(const char* name, int color, int key) {
    Add(name, [&](MPI_Comm* made) { MPI_Comm_split(MPI_COMM_WORLD, color, key, made); });
  }

  std::vector<Group> groups_;
};

template <class Drawn>
void RunOne(uint64_t number, Drawn& call) {
  if (settings.verbose) {
    std::fprintf(stderr, "rank %d: %llu: %s\n", world_rank, static_cast<unsigned long long>(number),
                 call.Text().c_str());
  }
  if (const std::string difference = call.Run(); !difference.empty()) {
    Fail(number, call.Text(), difference);
  }
}

void RunCalls(uint64_t begin, uint64_t end, int thread, int threads, const Groups& groups,
              bool steady) {
  for (uint64_t number = begin; number < end; ++number) {
    if (number % static_cast<uint64_t>(threads) != static_cast<uint64_t>(thread)) continue;
    Random random({settings.options.seed, number, 0x6e0b});
    const Group& group = groups.Of(random);
    if (group.communicator == MPI_COMM_NULL) continue;
    std::snprintf(running[thread], sizeof running[thread], "differential: rank %d in call %llu\n",
                  world_rank, static_cast<unsigned long long>(number));
    if (settings.others) {
      Burst burst(settings.options, number, group, world_rank);
      RunOne(number, burst);
      compared_of_bursts[static_cast<size_t>(burst.form())] += static_cast<uint64_t>(burst.calls());
    } else {
      Call call(settings.options, number, group, world_rank, steady);
      RunOne(number, call);
      ++compared[static_cast<size_t>(call.form())];
    }
  }
}

void RunBatch(uint64_t begin, uint64_t end) {
  Random random({settings.options.seed, begin / kBatch, 0xba7c4});
  const bool steady = random.OneIn(4);
  const int threads = static_cast<int>(random.Between(1, settings.threads));
  std::vector<std::unique_ptr<Groups>> groups;
  for (int thread = 0; thread < threads; ++thread) {
    groups.push_back(std::make_unique<Groups>(random, steady));
    random.Next();
  }
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) {
    others.emplace_back([&, thread] {
      RunCalls(begin, end, thread, threads, *groups[static_cast<size_t>(thread)], steady);
    });
  }
  RunCalls(begin, end, 0, threads, *groups[0], steady);
  for (std::thread& each : others) each.join();
}

std::vector<std::string> Words(const std::string& list) {
  std::vector<std::string> words(1);
  for (const char each : list) {
    if (each == '/') {
      words.emplace_back();
    } else {
      words.back() += each;
    }
  }
  return words;
}

// Every method; parameters below, at and above what so many ranks can use.
std::vector<std::string> AllAlgorithms() {
  std::vector<std::string> all = Words(
      "auto/mpi/linear/pairwise/xor/spread-out/scattered/scattered:b=1/scattered:b=2/"
      "two-phase-bruck/padded-bruck/tuna/coalesced/coalesced:r=2,b=1/coalesced:r=3/staggered/"
      "staggered:r=2,b=2/multilevel/multilevel:r=2,b=1/shared/shared:b=1/shared-coalesced/"
      "shared-coalesced:b=1");
  for (int radix = 2; radix <= world_size + 1; ++radix) {
    all.push_back("tuna:r=" + std::to_string(radix));
  }
  return all;
}

bool ReadSettings(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = std::min(argument.find('='), argument.size() - 1);
    const std::string name = argument.substr(0, equals);
    const std::string value = argument.substr(equals + 1);
    if (name == "--seed") {
      settings.options.seed = std::stoull(value);
    } else if (name == "--first") {
      settings.first = std::stoull(value);
    } else if (name == "--calls") {
      settings.calls = std::stoull(value);
    } else if (name == "--threads") {
      settings.threads = std::clamp(std::stoi(value), 1, kMaxThreads);
    } else if (name == "--algorithms") {
      settings.options.algorithms = Words(value);
    } else if (name == "--forms") {
      settings.options.forms = Words(value);
    } else if (name == "--collective") {
      settings.options.collective = value;
    } else if (argument == "--others") {
      settings.others = true;
    } else if (argument == "--verbose") {
      settings.verbose = true;
    } else if (name == "--against" && value == "messages") {
      settings.options.against_messages = true;
    } else {
      std::fprintf(stderr, "differential: unknown argument %s\n", argument.c_str());
      return false;
    }
  }
  return true;
}

// Of this process, all threads.
double ProcessorSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// How many calls of each form were compared on the busiest rank.
template <class Form, size_t kCount>
void Summarize(const std::array<std::atomic<uint64_t>, kCount>& counted, double seconds) {
  std::array<uint64_t, kCount> mine{}, most{};
  std::copy(counted.begin(), counted.end(), mine.begin());
  PMPI_Reduce(mine.data(), most.data(), kCount, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
  const double own_seconds = ProcessorSeconds();
  double processor_seconds = 0;
  PMPI_Reduce(&own_seconds, &processor_seconds, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (world_rank != 0) return;
  std::printf(
      "differential: %llu %s on %d ranks, seed %llu: no difference (calls of the busiest rank:",
      static_cast<unsigned long long>(settings.calls), settings.others ? "bursts" : "calls",
      world_size, static_cast<unsigned long long>(settings.options.seed));
  for (size_t form = 0; form < kCount; ++form) {
    std::printf("%s %llu %s", form == 0 ? "" : ",", static_cast<unsigned long long>(most[form]),
                Name(static_cast<Form>(form)));
  }
  std::printf("; %.1f s, %.1f s of processors)\n", seconds, processor_seconds);
}

int Main(int argc, char** argv) {
  if (!ReadSettings(argc, argv)) return 2;
  WaitForManyRanks(settings.threads > 1);
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, settings.threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                  &provided);
  if (provided < MPI_THREAD_MULTIPLE) settings.threads = 1;
  std::signal(SIGTERM, &SayWhatRuns);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  if (settings.options.algorithms.empty()) settings.options.algorithms = AllAlgorithms();
  const double start = MPI_Wtime();
  const uint64_t end = settings.first + settings.calls;
  for (uint64_t begin = settings.first; begin < end;) {
    const uint64_t next = std::min(end, begin / kBatch * kBatch + kBatch);
    RunBatch(begin, next);
    begin = next;
  }
  const double seconds = MPI_Wtime() - start;
  if (settings.others) {
    Summarize<BurstForm>(compared_of_bursts, seconds);
  } else {
    Summarize<Form>(compared, seconds);
  }
  MPI_Finalize();
  return 0;
}

}  // namespace
}  // namespace tutti::mpi::differential

int main(int argc, char** argv) { return tutti::mpi::differential::Main(argc, argv); }
