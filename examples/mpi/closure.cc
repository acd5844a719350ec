// Transitive closure of a graph by repeated relational join, with an exchange in every iteration.
//
//   closure --file graph.txt                 edges of a file: two numbers a line, # starts a
//   comment closure --vertices 200 --edges 400 --seed 1         a random graph closure --vertices
//   200 --edges 400 --seed 1 --chain yes   with a chain through all vertices: as
//                                            many iterations as vertices
//           --iterations 0 (0: until nothing is new)  --check yes|no  --spoil no|yes
//
// Model: a tuple (x, y) says that y is reached from x. Edges (y, z) lie on the rank that the hash
// of
//   y names, reached pairs (x, y) on the rank of y, so both sides of the join on y meet there. An
//   iteration joins the pairs that were new in the one before with the edges (semi-naive), sends
//   every (x, z) to the rank of z, and keeps what is not known there. It ends when nothing was new.
//   Blocks are unequal, and most are empty near the end.
// Check: each rank walks the whole graph backwards from each of its vertices, and the sets of
//   vertices that reach it must be the same. --spoil drops one pair: the check must notice.
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "exchange_blocks.h"

namespace {

using Vertex = uint32_t;
using Edge = std::pair<Vertex, Vertex>;
using Neighbours = std::unordered_map<Vertex, std::vector<Vertex>>;

uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

size_t OwnerOf(Vertex vertex, int ranks) {
  return static_cast<size_t>(Mix(vertex + 0x9e3779b97f4a7c15ULL) % static_cast<uint64_t>(ranks));
}

// Every rank reads the file. Returns what is wrong, or nothing.
std::string ReadEdges(const std::string& path, std::vector<Edge>* edges) {
  std::ifstream file(path);
  if (!file) return path + ": cannot be read";
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    line.resize(std::min(line.size(), line.find('#')));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    long long from = 0;
    long long to = 0;
    int used = 0;
    const bool read = std::sscanf(line.c_str(), "%lld %lld %n", &from, &to, &used) == 2 &&
                      static_cast<size_t>(used) == line.size();
    if (!read || std::min(from, to) < 0 || std::max(from, to) > UINT32_MAX) {
      return path + ":" + std::to_string(number) + ": got \"" + line +
             "\", wanted two vertices, numbers from 0 to 4294967295";
    }
    edges->emplace_back(static_cast<Vertex>(from), static_cast<Vertex>(to));
  }
  return "";
}

std::vector<Edge> MakeEdges(Vertex vertices, int64_t count, uint64_t seed, bool chain) {
  std::vector<Edge> edges;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t drawn = Mix(seed * 0x9e3779b97f4a7c15ULL + static_cast<uint64_t>(i));
    const auto from = static_cast<Vertex>((drawn & 0xffffffffU) % vertices);
    const auto to = static_cast<Vertex>((drawn >> 32) % vertices);
    // Beside a chain edges lead back, or they would shorten it.
    edges.emplace_back(chain ? std::max(from, to) : from, chain ? std::min(from, to) : to);
  }
  for (Vertex v = 0; chain && v + 1 < vertices; ++v) edges.emplace_back(v, v + 1);
  return edges;
}

class Closure {
 public:
  Closure(const std::vector<Edge>& edges, int rank, int ranks) : ranks_(ranks) {
    const auto me = static_cast<size_t>(rank);
    for (const auto& [from, to] : edges) {
      if (OwnerOf(from, ranks) == me) edges_[from].push_back(to);
      if (OwnerOf(to, ranks) == me) Keep(from, to);
    }
  }

  // One join and one exchange; how many pairs were new on all ranks.
  int Step(examples::Communication* communication, int64_t* new_pairs) {
    std::vector<std::vector<Vertex>> leaving(static_cast<size_t>(ranks_));
    for (const auto& [from, middle] : fresh_) {
      const auto found = edges_.find(middle);
      if (found == edges_.end()) continue;
      for (const Vertex to : found->second) {
        std::vector<Vertex>& block = leaving[OwnerOf(to, ranks_)];
        block.push_back(from);
        block.push_back(to);
      }
    }
    fresh_.clear();
    std::vector<Vertex> send;
    std::vector<int> counts;
    for (const std::vector<Vertex>& block : leaving) {
      counts.push_back(static_cast<int>(block.size()));
      send.insert(send.end(), block.begin(), block.end());
    }
    std::vector<int> arriving(counts.size());
    const double since = MPI_Wtime();
    if (const int error =
            MPI_Alltoall(counts.data(), 1, MPI_INT, arriving.data(), 1, MPI_INT, MPI_COMM_WORLD)) {
      return error;
    }
    communication->seconds += MPI_Wtime() - since;
    size_t total = 0;
    for (const int count : arriving) total += static_cast<size_t>(count);
    std::vector<Vertex> received(total);
    if (const int error = examples::ExchangeBlocks(send, counts, &received, arriving, MPI_UINT32_T,
                                                   MPI_COMM_WORLD, communication)) {
      return error;
    }
    for (size_t i = 0; i < received.size(); i += 2) Keep(received[i], received[i + 1]);
    const auto mine = static_cast<int64_t>(fresh_.size());
    return MPI_Allreduce(&mine, new_pairs, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  }

  int64_t pairs() const {
    int64_t count = 0;
    for (const auto& [to, from] : reached_) count += static_cast<int64_t>(from.size());
    return count;
  }

  void DropOne() {
    if (!reached_.empty()) reached_.erase(reached_.begin());
  }

  // Against a walk backwards from each vertex of this rank.
  bool IsRight(const std::vector<Edge>& edges, int rank) const {
    Neighbours before;
    std::unordered_set<Vertex> mine;
    for (const auto& [from, to] : edges) {
      before[to].push_back(from);
      if (OwnerOf(to, ranks_) == static_cast<size_t>(rank)) mine.insert(to);
    }
    if (reached_.size() != mine.size()) return false;
    for (const Vertex to : mine) {
      std::unordered_set<Vertex> expected;
      std::vector<Vertex> todo = {to};
      while (!todo.empty()) {
        const auto found = before.find(todo.back());
        todo.pop_back();
        if (found == before.end()) continue;
        for (const Vertex from : found->second) {
          if (expected.insert(from).second) todo.push_back(from);
        }
      }
      const auto got = reached_.find(to);
      if (got == reached_.end() || got->second != expected) return false;
    }
    return true;
  }

 private:
  void Keep(Vertex from, Vertex to) {
    if (reached_[to].insert(from).second) fresh_.emplace_back(from, to);
  }

  int ranks_;
  Neighbours edges_;  // of the vertices that this rank owns
  std::unordered_map<Vertex, std::unordered_set<Vertex>> reached_;  // [to]: from where
  std::vector<Edge> fresh_;  // pairs that were new in the iteration before
};

int Main(int argc, char** argv) {
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  examples::Flags flags(argc, argv);
  const std::string path = flags.Get("file", "");
  const auto vertices = static_cast<Vertex>(flags.GetNumber("vertices", 200, 1));
  const int64_t count = flags.GetNumber("edges", 400, 0);
  const auto seed = static_cast<uint64_t>(flags.GetNumber("seed", 1, 0));
  const bool chain = flags.Get("chain", "no") == "yes";
  const int64_t max_iterations = flags.GetNumber("iterations", 0, 0);
  const bool check = flags.Get("check", "yes") == "yes" && max_iterations == 0;
  const bool spoil = flags.Get("spoil", "no") == "yes";
  std::vector<Edge> edges;
  if (path.empty()) {
    edges = MakeEdges(vertices, count, seed, chain);
  } else if (const std::string wrong = ReadEdges(path, &edges); !wrong.empty()) {
    flags.Reject(wrong);
  }
  if (const std::string wrong = flags.Finish(); !wrong.empty()) {
    return examples::Refuse(rank, "closure", wrong);
  }
  Closure closure(edges, rank, ranks);
  examples::Communication communication;
  MPI_Barrier(MPI_COMM_WORLD);
  const double since = MPI_Wtime();
  int64_t iterations = 0;
  int64_t new_pairs = 1;
  while (new_pairs > 0 && (max_iterations == 0 || iterations < max_iterations)) {
    if (const int error = closure.Step(&communication, &new_pairs); error != MPI_SUCCESS) {
      std::fprintf(stderr, "closure: an exchange failed with MPI error %d\n", error);
      return 1;
    }
    ++iterations;
  }
  const double mine[] = {communication.seconds, MPI_Wtime() - since};
  double most[2];
  MPI_Reduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (spoil && rank == ranks / 2) closure.DropOne();
  const int64_t own = closure.pairs();
  int64_t pairs = 0;
  MPI_Reduce(&own, &pairs, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  const int right = !check || closure.IsRight(edges, rank) ? 1 : 0;
  int good = 0;
  MPI_Allreduce(&right, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0) {
    std::printf("closure of %zu edges on %d ranks: %lld pairs after %lld iterations\n",
                edges.size(), ranks, static_cast<long long>(pairs),
                static_cast<long long>(iterations));
    if (check) std::printf("%s a serial walk\n", good == 1 ? "as" : "NOT as");
    std::printf("communication %.1f us, all %.1f us (slowest rank)\n", most[0] * 1e6,
                most[1] * 1e6);
  }
  return good == 1 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) { return examples::RunProgram(Main, argc, argv); }
