// Times all-to-all-v algorithms over sizes and distributions of blocks; what `tutti bench
// tuna-fig...` runs under SimGrid's smpirun, and anyone under mpirun.
//
//   tutti-mpi-sweep [--iterations N] [--seed K] [--light-warm-up] DISTRIBUTION/SIZE/ALGORITHM...
//
// Model      DISTRIBUTION is the bytes of the block from a rank to another, whole FP64 values:
//              uniform    uniform in [0, SIZE]
//              normal     mean 1000/1024 SIZE, standard deviation 240/1024 SIZE, none below 0
//              power-law  density x^-0.95 in [1, SIZE]: few large blocks, many empty ones
//              fft1       [tuna] N1: ranks below 0.625 P send 8 values to those below 0.78125 P
//              fft2       [tuna] N2: 64 values, to the last rank 16
//            (SIZE of the last two is not looked at.) The same seed: the same blocks in every MPI.
//            ALGORITHM is what TUTTI_ALLTOALLV takes, or settled-auto: `auto` on a communicator of
//            its own, measured at its first call, which sets up, and once nothing is tried any more
//            (at most 64 calls); or, in simulation, network-floor: nothing is sent, seconds are
//            what the busiest link takes for the blocks (network_floor.h). Every other point is run
//            once unmeasured, then N times; the answer of the first measured run is checked (first
//            and last byte of each block). A light warm-up has empty blocks: enough in simulation,
//            where caches are none.
// Output     CSV on rank 0, one line per iteration as it ends: seconds is the largest of all ranks
//            from a barrier on, iteration counts the calls before (settled-auto: a line named auto,
//            one named by what it settled on); the parts are means over the ranks and
//            temporary_bytes and messages the largest of a rank.
// Errors     Exit code 2 and a line on stderr: wrong arguments; 1: a wrong answer or an MPI error.
// Reference  [tuna] sections V and VI.
#include <mpi.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "block_exchange.h"
#include "choice/choose.h"
#include "communicator_state.h"
#include "exchange/run.h"
#include "served.h"
#include "trace.h"
#include "tutti/alltoallv/algorithm.h"
#include "tutti/mpi/alltoallv.h"
#ifdef TUTTI_MPI_SMPI
#include "programs/network_floor.h"
#endif

namespace {

using tutti::alltoallv::Algorithm;
using tutti::alltoallv::Method;
using tutti::mpi::Trace;

constexpr int64_t kValue = sizeof(double);
#ifdef TUTTI_MPI_SMPI
constexpr std::string_view kNetworkFloor = "network-floor";
#endif

// splitmix64: the block of a pair depends on nothing but the seed and the pair.
uint64_t Mixed(uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

// In [0, 1).
double Draw(uint64_t seed, int from, int to, int which) {
  const uint64_t pair = (static_cast<uint64_t>(from) << 32U) | static_cast<uint64_t>(to);
  const uint64_t bits = Mixed(Mixed(pair ^ Mixed(seed)) + static_cast<uint64_t>(which));
  return static_cast<double>(bits >> 11U) * 0x1p-53;
}

struct Point {
  std::string distribution;
  int64_t size = 0;
  Algorithm algorithm;
  bool settles = false;
  bool is_floor = false;

  int64_t Values(uint64_t seed, int from, int to, int ranks) const {
    const auto scale = static_cast<double>(size) / kValue;
    if (distribution == "uniform") {
      const int64_t choices = size / kValue + 1;  // 0 to all that fit
      return static_cast<int64_t>(Draw(seed, from, to, 0) * static_cast<double>(choices));
    }
    if (distribution == "normal") {
      // Box and Muller.
      const double radius = std::sqrt(-2 * std::log(1 - Draw(seed, from, to, 0)));
      const double standard = radius * std::cos(2 * M_PI * Draw(seed, from, to, 1));
      return std::max<int64_t>(0, std::llround(scale * (1000 + 240 * standard) / 1024));
    }
    if (distribution == "power-law") {
      constexpr double kExponent = 0.95;
      const double top = std::pow(static_cast<double>(size), 1 - kExponent);
      const double bytes = std::pow(1 + Draw(seed, from, to, 0) * (top - 1), 1 / (1 - kExponent));
      return static_cast<int64_t>(bytes) / kValue;
    }
    if (distribution == "fft1") {
      return from < std::ceil(0.625 * ranks) && to < std::ceil(0.78125 * ranks) ? 8 : 0;
    }
    return to == ranks - 1 ? 16 : 64;  // fft2
  }
};

// g++ 12 warns of "'" + text for no reason.
std::string Quoted(std::string_view text) {
  std::string quoted(1, '\'');
  quoted.append(text).push_back('\'');
  return quoted;
}

struct Arguments {
  int iterations = 1;
  uint64_t seed = 1;
  bool light_warm_up = false;
  std::vector<Point> points;
};

template <class Number>
bool ParseNumber(std::string_view text, Number least, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size() && *number >= least;
}

// What is wrong; "" if nothing.
std::string ParsePoint(std::string_view text, Point* point) {
  const size_t first = text.find('/');
  const size_t second = first == text.npos ? text.npos : text.find('/', first + 1);
  if (second == text.npos) {
    return Quoted(text) + " is no DISTRIBUTION/SIZE/ALGORITHM";
  }
  point->distribution = text.substr(0, first);
  const auto known = {"uniform", "normal", "power-law", "fft1", "fft2"};
  if (std::find(known.begin(), known.end(), point->distribution) == known.end()) {
    return "unknown distribution " + Quoted(point->distribution) +
           "; accepted are uniform, normal, power-law, fft1, fft2";
  }
  const std::string_view size = text.substr(first + 1, second - first - 1);
  if (!ParseNumber<int64_t>(size, 1, &point->size)) {
    return "size is " + Quoted(size) + "; accepted are whole numbers of bytes from 1";
  }
  constexpr std::string_view kSettled = "settled-";
  std::string_view name = text.substr(second + 1);
#ifdef TUTTI_MPI_SMPI
  point->is_floor = name == kNetworkFloor;
  if (point->is_floor) return "";
#endif
  point->settles = name == "settled-auto";
  if (point->settles) name.remove_prefix(kSettled.size());
  const auto algorithm = tutti::alltoallv::ParseAlgorithm(name);
  if (!algorithm) return algorithm.error().message;
  point->algorithm = *algorithm;
  return "";
}

std::string Parse(int count, char** words, Arguments* arguments) {
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--light-warm-up") {
      arguments->light_warm_up = true;
      continue;
    }
    if (word == "--iterations" || word == "--seed") {
      const std::string_view value = ++i < count ? words[i] : "";
      const bool good = word == "--seed" ? ParseNumber<uint64_t>(value, 0, &arguments->seed)
                                         : ParseNumber<int>(value, 1, &arguments->iterations);
      if (!good) return std::string(word) + " is " + Quoted(value);
      continue;
    }
    if (const std::string wrong = ParsePoint(word, &arguments->points.emplace_back());
        !wrong.empty()) {
      return wrong;
    }
  }
  return arguments->points.empty() ? "no points" : "";
}

// One side's blocks, packed in the order of ranks.
struct Blocks {
  std::vector<int64_t> bytes, offset;
  std::vector<int> counts, displacements;  // the same, for MPI calls
  std::vector<std::byte> buffer;

  void Lay() {
    int64_t total = 0;
    offset.clear();
    counts.clear();
    displacements.clear();
    for (const int64_t each : bytes) {
      offset.push_back(total);
      counts.push_back(static_cast<int>(each));
      displacements.push_back(static_cast<int>(total));
      total += each;
    }
    if (static_cast<int64_t>(buffer.size()) < total) {
      buffer.resize(static_cast<size_t>(total));
    }
  }
};

std::byte Mark(int from, int to) { return static_cast<std::byte>((from * 31 + to * 7 + 1) & 0xff); }

class Sweep {
 public:
  explicit Sweep(const Arguments& arguments) : arguments_(arguments) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }

  // An exit code.
  int Run() {
    if (const int error = tutti::mpi::CommunicatorState::Of(MPI_COMM_WORLD, &state_)) {
      return Failed("no communicator state", error);
    }
    if (rank_ == 0) {
      std::puts(
          "distribution,size,algorithm,iteration,seconds,prepare_s,metadata_s,data_s,copy_s,"
          "rearrange_s,inter_node_s,temporary_bytes,messages");
    }
    for (const Point& point : arguments_.points) {
      if (point.settles) {
        if (const int code = Settle(point)) return code;
        continue;
      }
#ifdef TUTTI_MPI_SMPI
      if (point.is_floor) {
        PrintFloor(point);
        continue;
      }
#endif
      Prepare(point, arguments_.light_warm_up);
      if (const int error = Exchange(point.algorithm, nullptr)) return Failed("warm-up", error);
      if (arguments_.light_warm_up) Prepare(point, false);
      for (int iteration = 0; iteration < arguments_.iterations; ++iteration) {
        if (const int code = Once(point, iteration)) return code;
      }
    }
    return 0;
  }

 private:
  int Failed(const char* what, int error) const {
    if (rank_ == 0) std::fprintf(stderr, "sweep: %s (MPI error %d)\n", what, error);
    return 1;
  }

  void Prepare(const Point& point, bool empty) {
    const auto bytes = [&](int from, int to) {
      return empty ? 0 : kValue * point.Values(arguments_.seed, from, to, size_);
    };
    send_.bytes.clear();
    receive_.bytes.clear();
    for (int peer = 0; peer < size_; ++peer) {
      send_.bytes.push_back(bytes(rank_, peer));
      receive_.bytes.push_back(bytes(peer, rank_));
    }
    send_.Lay();
    receive_.Lay();
    for (int peer = 0; peer < size_; ++peer) {
      const auto at = static_cast<size_t>(peer);
      std::fill_n(send_.buffer.begin() + send_.offset[at], send_.bytes[at], Mark(rank_, peer));
    }
    std::fill(receive_.buffer.begin(), receive_.buffer.end(), std::byte{0});
  }

  int Exchange(const Algorithm& algorithm, Trace* trace) {
    if (algorithm.method == Method::kAuto) {
      return tutti::mpi::Alltoallv(send_.buffer.data(), send_.counts.data(),
                                   send_.displacements.data(), MPI_BYTE, receive_.buffer.data(),
                                   receive_.counts.data(), receive_.displacements.data(), MPI_BYTE,
                                   auto_communicator_, algorithm);
    }
    if (algorithm.method == Method::kMpi) {
      return PMPI_Alltoallv(send_.buffer.data(), send_.counts.data(), send_.displacements.data(),
                            MPI_BYTE, receive_.buffer.data(), receive_.counts.data(),
                            receive_.displacements.data(), MPI_BYTE, MPI_COMM_WORLD);
    }
    const tutti::mpi::BlockExchange exchange{
        .communicator = state_->duplicate(),
        .rank = rank_,
        .size = size_,
        .send = send_.buffer.data(),
        .send_offset = send_.offset,
        .send_bytes = send_.bytes,
        .receive = receive_.buffer.data(),
        .receive_offset = receive_.offset,
        .receive_bytes = receive_.bytes,
    };
    return tutti::mpi::RunExchange(*state_, exchange, algorithm, trace);
  }

  bool Correct() const {
    for (int peer = 0; peer < size_; ++peer) {
      const auto at = static_cast<size_t>(peer);
      if (receive_.bytes[at] == 0) continue;
      const std::byte* block = receive_.buffer.data() + receive_.offset[at];
      if (block[0] != Mark(peer, rank_) || block[receive_.bytes[at] - 1] != Mark(peer, rank_)) {
        return false;
      }
    }
    return true;
  }

  int Settle(const Point& point) {
    constexpr int kMaxCalls = 64;
    if (const int error = tutti::mpi::SameRanks(MPI_COMM_WORLD, &auto_communicator_)) {
      return Failed("no communicator", error);
    }
    Prepare(point, false);
    int code = Once(point, 0);
    int calls = 1;
    for (; code == 0 && calls < kMaxCalls && !tutti::mpi::IsSettled(auto_communicator_); ++calls) {
      MPI_Barrier(MPI_COMM_WORLD);
      if (const int error = Exchange(point.algorithm, nullptr)) code = Failed("settling", error);
    }
    if (code == 0) code = Once(point, calls);
    MPI_Comm_free(&auto_communicator_);
    auto_communicator_ = MPI_COMM_WORLD;
    return code;
  }

#ifdef TUTTI_MPI_SMPI
  void PrintFloor(const Point& point) const {
    const double seconds = tutti::mpi::NetworkFloor(MPI_COMM_WORLD, [&](int from, int to) {
      return kValue * point.Values(arguments_.seed, from, to, size_);
    });
    if (rank_ != 0) return;
    std::printf("%s,%lld,\"%s\",0,%.9g,0,0,0,0,0,0,0,0\n", point.distribution.c_str(),
                static_cast<long long>(point.size), kNetworkFloor.data(), seconds);
    std::fflush(stdout);
  }
#endif

  int Once(const Point& point, int iteration) {
    Trace trace;
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    const int error = Exchange(point.algorithm, &trace);
    const double elapsed = MPI_Wtime() - begin;
    const bool settled = point.settles && iteration > 0;
    const std::string name =
        ToString(settled ? tutti::mpi::LatestServed().algorithm : point.algorithm);
    if (error != MPI_SUCCESS) return Failed(name.c_str(), error);
    if (iteration == 0) {
      const int correct = Correct() ? 1 : 0;
      int all_correct = 0;
      MPI_Allreduce(&correct, &all_correct, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
      if (all_correct == 0) return Failed((name + ": wrong answer").c_str(), 0);
    }
    const double parts[] = {trace.prepare_s, trace.metadata_s,  trace.data_s,
                            trace.copy_s,    trace.rearrange_s, trace.inter_node_s};
    const double peaks[] = {elapsed, static_cast<double>(trace.temporary_bytes),
                            static_cast<double>(trace.messages)};
    double sum[std::size(parts)], largest[std::size(peaks)];
    MPI_Reduce(parts, sum, std::size(parts), MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(peaks, largest, std::size(peaks), MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank_ != 0) return 0;
    std::printf("%s,%lld,\"%s\",%d,%.9g", point.distribution.c_str(),
                static_cast<long long>(point.size), name.c_str(), iteration, largest[0]);
    for (const double part : sum) std::printf(",%.9g", part / size_);
    std::printf(",%.0f,%.0f\n", largest[1], largest[2]);
    std::fflush(stdout);
    return 0;
  }

  const Arguments& arguments_;
  int rank_ = 0, size_ = 0;
  tutti::mpi::CommunicatorState* state_ = nullptr;
  MPI_Comm auto_communicator_ = MPI_COMM_WORLD;
  Blocks send_, receive_;
};

}  // namespace

int main(int count, char** words) {
  MPI_Init(&count, &words);
  Arguments arguments;
  const std::string wrong = Parse(count, words, &arguments);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int code = 2;
  if (wrong.empty()) {
    code = Sweep(arguments).Run();
  } else if (rank == 0) {
    std::fprintf(stderr,
                 "sweep: %s\nusage: tutti-mpi-sweep [--iterations N] [--seed K] [--light-warm-up] "
                 "DISTRIBUTION/SIZE/ALGORITHM...\n",
                 wrong.c_str());
  }
  MPI_Finalize();
  return code;
}
