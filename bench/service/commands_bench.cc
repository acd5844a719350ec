// What a daemon's thread does for a small collective of ranks of its host, from their commands in the queue to their ends: with
// a core for every thread, what the service adds to a collective is at least that. No rank waits for anything here. Beside it, the
// limit: the same sum alone, with nobody's commands to read and nobody to tell.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "host_collective.h"
#include "support/raw_tenant.h"
#include "support/served_daemon.h"
#include "tutti/ipc/layout.h"
#include "tutti/ipc/packet.h"

namespace tutti {
namespace {

using ipc::Kind;
using ipc::Packet;

// A process with all ranks of a communicator.
class HostOfRanks {
 public:
  explicit HostOfRanks(uint32_t ranks) {
    const Packet memory = tenant_.AskOf({.kind = Kind::kAllocate, .words = {kBytesARank * ranks}});
    const Packet id = tenant_.AskOf({.kind = Kind::kMakeId});
    if (memory.kind != Kind::kAllocated || id.kind != Kind::kIdMade) std::abort();
    buffer_ = static_cast<uint32_t>(memory.words[0]);
    for (uint32_t rank = 0; rank < ranks; ++rank)
      tenant_.Send({.kind = Kind::kJoin, .words = {ranks, rank}, .text = id.text});
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const auto joined = tenant_.Receive();
      if (!joined || joined->packet.kind != Kind::kJoined) std::abort();
      lines_.push_back(static_cast<uint32_t>(joined->packet.words[0]));
    }
  }

  // Of all ranks, until all are told that it is complete.
  void AllReduce(uint64_t count) {
    ++sequence_;
    for (size_t rank = 0; rank < lines_.size(); ++rank) {
      ipc::Slot slot{};
      slot.opcode = ipc::Opcode::kCollective;
      slot.kind = static_cast<uint8_t>(CollectiveKind::kAllReduce);
      slot.type = static_cast<uint8_t>(DataType::kFloat32);
      slot.line = lines_[rank];
      slot.sequence = sequence_;
      slot.count = count;
      slot.input = slot.output = buffer_;
      slot.input_offset = slot.output_offset = rank * kBytesARank;
      tenant_.SubmitSilently(slot);
    }
    while (!IsCompleted()) daemon_.Round();
  }

 private:
  static constexpr uint64_t kBytesARank = 65536;

  bool IsCompleted() const {
    for (const uint32_t line : lines_)
      if (tenant_.status().lines[line].completed.load() < sequence_) return false;
    return true;
  }

  test_support::ServedDaemon daemon_{"tutti-commands"};
  test_support::RawTenant tenant_ = daemon_.Come();
  uint32_t buffer_ = 0;
  std::vector<uint32_t> lines_;
  uint64_t sequence_ = 0;
};

void BM_SmallCollectives(benchmark::State& state) {
  const auto ranks = static_cast<uint32_t>(state.range(0));
  HostOfRanks host(ranks);
  for (auto _ : state) host.AllReduce(static_cast<uint64_t>(state.range(1)) / sizeof(float));
}

void BM_TheSumAlone(benchmark::State& state) {
  const auto ranks = static_cast<int32_t>(state.range(0));
  const auto bytes = static_cast<size_t>(state.range(1));
  std::vector<std::vector<std::byte>> buffers(static_cast<size_t>(ranks),
                                              std::vector<std::byte>(bytes));
  service::HostCollective collective(ranks);
  for (auto _ : state) {
    collective.Reset();
    for (int32_t rank = 0; rank < ranks; ++rank) {
      std::byte* buffer = buffers[static_cast<size_t>(rank)].data();
      collective.Enter(rank, {.input = buffer,
                              .output = buffer,
                              .count = static_cast<int64_t>(bytes / sizeof(float))});
    }
    if (!collective.is_done()) std::abort();
  }
}

void Cases(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"ranks", "bytes"})
      ->ArgsProduct({{2, 4, 8}, {8, 1024}})
      ->Unit(benchmark::kMicrosecond);
}
BENCHMARK(BM_SmallCollectives)->Apply(Cases);
BENCHMARK(BM_TheSumAlone)->Apply(Cases);

}  // namespace
}  // namespace tutti

BENCHMARK_MAIN();
