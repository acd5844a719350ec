// Datatypes, MPI_IN_PLACE, communicators and wrong arguments: what a program may hand to an
// exchange besides bytes. Where elements of a datatype lie is what MPI_Unpack says: the expected
// buffers are unpacked block by block from the bytes that the seed gives.
#include "datatypes.h"

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "exchange_harness.h"
#include "tutti/alltoallv/algorithm.h"
#include "tutti/mpi/alltoallv.h"
#include "tutti/mpi/persistent.h"
#include "tutti/mpi/tutti_mpi.h"

namespace tutti::mpi {
namespace {

using alltoallv::Algorithm;
using alltoallv::Method;

std::vector<Algorithm> SomeOfEachKind() {
  std::vector<Algorithm> all;
  for (const char* text :
       {"linear", "pairwise", "xor", "scattered:b=2", "spread-out", "two-phase-bruck",
        "padded-bruck", "tuna:r=2", "tuna:r=3", "coalesced", "shared"}) {
    all.push_back(alltoallv::ParseAlgorithm(text).value());
  }
  return all;
}

// --- Datatypes: six ints an element in every one, so that any can be sent to any other
// ------------------

constexpr int kElementBytes = 24;

struct NamedType {
  const char* name;
  bool plain;
  MPI_Datatype type;
};

std::vector<NamedType> Types() {
  std::vector<NamedType> types;
  const auto add = [&](const char* name, bool plain, MPI_Datatype type) {
    MPI_Type_commit(&type);
    types.push_back({name, plain, type});
  };
  MPI_Datatype contiguous;
  MPI_Type_contiguous(6, MPI_INT, &contiguous);
  MPI_Datatype type;
  MPI_Type_dup(contiguous, &type);
  add("copy of contiguous", true, type);
  MPI_Type_vector(3, 2, 2, MPI_INT, &type);
  add("vector without gaps", true, type);
  MPI_Type_vector(3, 2, 3, MPI_INT, &type);
  add("vector with gaps", false, type);
  MPI_Type_vector(3, 2, -3, MPI_INT, &type);
  add("vector that goes down", false, type);
  int lengths[] = {2, 1, 3};
  int backwards[] = {4, 3, 0};
  MPI_Type_indexed(3, lengths, backwards, MPI_INT, &type);
  add("blocks in reverse without gaps", false, type);
  MPI_Aint places[] = {-8, 0, 12};
  MPI_Datatype ints[] = {MPI_INT, MPI_INT, MPI_INT};
  MPI_Type_create_struct(3, lengths, places, ints, &type);
  add("struct that begins below 0", false, type);
  MPI_Type_create_resized(contiguous, 0, 40, &type);
  add("longer extent", false, type);
  MPI_Type_create_resized(contiguous, -8, 48, &type);
  add("lower bound below 0", false, type);
  MPI_Type_create_resized(contiguous, 0, 24, &type);
  add("extent given that it has", false, type);
  add("contiguous", true, contiguous);
  return types;
}

void ShapesAreTold(const std::vector<NamedType>& types) {
  for (const NamedType& each : types) {
    TypeShape shape;
    if (ShapeOf(each.type, &shape) != MPI_SUCCESS || shape.size != kElementBytes ||
        shape.plain != each.plain) {
      Fail(std::string("shape of ") + each.name);
    }
  }
  TypeShape shape;
  if (ShapeOf(MPI_DOUBLE_INT, &shape) != MPI_SUCCESS || shape.plain) Fail("shape of a pair");
  if (ShapeOf(MPI_DOUBLE, &shape) != MPI_SUCCESS || !shape.plain) Fail("shape of double");
}

// A side of an exchange: where its elements lie in a buffer with room on both ends.
struct Side {
  MPI_Datatype type;
  std::vector<int> counts, displacements;
  std::vector<unsigned char> memory;

  static constexpr size_t kMargin = 512;

  Side(MPI_Datatype of, std::vector<int> how_many, uint64_t seed) : type(of), counts(how_many) {
    std::vector<size_t> order(counts.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::mt19937_64 random(seed);
    std::shuffle(order.begin(), order.end(), random);
    displacements.resize(counts.size());
    int elements = 0;
    for (const size_t block : order) {
      // Elements of some types reach into their neighbours' extents: at least two apart.
      elements += 2 + static_cast<int>(random() % 2);
      displacements[block] = elements;
      elements += counts[block];
    }
    MPI_Aint lower_bound = 0;
    MPI_Aint extent = 0;
    MPI_Type_get_extent(type, &lower_bound, &extent);
    const int64_t bytes = (elements + 2) * static_cast<int64_t>(std::abs(extent));
    memory.assign(static_cast<size_t>(bytes) + 2 * kMargin, kUntouched);
  }

  unsigned char* base() { return memory.data() + kMargin; }

  // Puts the bytes of a block where its elements lie.
  void Put(size_t block, std::vector<unsigned char> bytes) {
    if (counts[block] == 0) return;
    MPI_Aint lower_bound = 0;
    MPI_Aint extent = 0;
    MPI_Type_get_extent(type, &lower_bound, &extent);
    int position = 0;
    MPI_Unpack(bytes.data(), static_cast<int>(bytes.size()), &position,
               base() + displacements[block] * extent, counts[block], type, MPI_COMM_SELF);
  }
};

std::vector<unsigned char> BlockBytes(uint64_t seed, int source, int destination, int elements) {
  std::vector<unsigned char> bytes(static_cast<size_t>(elements) * kElementBytes);
  for (size_t k = 0; k < bytes.size(); ++k) {
    bytes[k] = ByteOf(seed, source, destination, static_cast<int64_t>(k));
  }
  return bytes;
}

void CheckTypes(const Ranks& ranks, const NamedType& send_type, const NamedType& receive_type,
                bool in_place, const Algorithm& algorithm) {
  const Workload workload{.seed = 41, .most = 12, .zeros_of_eight = 2, .symmetric = in_place};
  std::vector<int> sent;
  std::vector<int> received;
  for (int peer = 0; peer < ranks.size; ++peer) {
    sent.push_back(workload.Count(ranks.rank, peer));
    received.push_back(workload.Count(peer, ranks.rank));
  }
  Side out(send_type.type, sent, 1);
  Side in(receive_type.type, received, 2);
  Side expected(receive_type.type, received, 2);
  for (size_t peer = 0; peer < sent.size(); ++peer) {
    const int other = static_cast<int>(peer);
    const auto given = BlockBytes(workload.seed, ranks.rank, other, sent[peer]);
    out.Put(peer, given);
    if (in_place) in.Put(peer, given);
    expected.Put(peer, BlockBytes(workload.seed, other, ranks.rank, received[peer]));
  }
  const std::vector<unsigned char> out_before = out.memory;
  const int error = in_place
                        ? Alltoallv(MPI_IN_PLACE, nullptr, nullptr, MPI_DATATYPE_NULL, in.base(),
                                    in.counts.data(), in.displacements.data(), in.type,
                                    ranks.communicator, algorithm)
                        : Alltoallv(out.base(), out.counts.data(), out.displacements.data(),
                                    out.type, in.base(), in.counts.data(), in.displacements.data(),
                                    in.type, ranks.communicator, algorithm);
  const std::string name = alltoallv::ToString(algorithm) + " on " + std::to_string(ranks.size) +
                           " ranks, " + (in_place ? "in place" : send_type.name) + " to " +
                           receive_type.name;
  if (error != MPI_SUCCESS) Fail(name + ": error " + std::to_string(error));
  if (in.memory != expected.memory) Fail(name + ": wrong bytes");
  if (out.memory != out_before) Fail(name + ": the send buffer was written");
}

void EveryTypeArrives(const Ranks& world, const std::vector<NamedType>& types) {
  size_t turn = 0;
  for (const Algorithm& algorithm : SomeOfEachKind()) {
    for (size_t k = 0; k < types.size(); ++k) {
      CheckTypes(world, types[k], types[(k + ++turn) % types.size()], false, algorithm);
      CheckTypes(world, types[k], types[k], true, algorithm);
    }
  }
}

// Uniform all-to-all of a derived type.
void UniformOfDerivedTypes(const Ranks& world, const std::vector<NamedType>& types) {
  for (const Algorithm& algorithm : SomeOfEachKind()) {
    for (const NamedType& each : types) {
      MPI_Aint lower_bound = 0;
      MPI_Aint extent = 0;
      MPI_Type_get_extent(each.type, &lower_bound, &extent);
      const std::vector<int> counts(static_cast<size_t>(world.size), 3);
      Side out(each.type, counts, 1);
      Side in(each.type, counts, 1);
      Side expected(each.type, counts, 1);
      for (size_t peer = 0; peer < counts.size(); ++peer) {
        for (Side* side : {&out, &in, &expected}) {
          side->displacements[peer] = 3 * static_cast<int>(peer);
        }
        const int other = static_cast<int>(peer);
        out.Put(peer, BlockBytes(51, world.rank, other, 3));
        expected.Put(peer, BlockBytes(51, other, world.rank, 3));
      }
      const int error = Alltoall(out.base(), 3, each.type, in.base(), 3, each.type,
                                 world.communicator, algorithm);
      if (error != MPI_SUCCESS || in.memory != expected.memory) {
        Fail(alltoallv::ToString(algorithm) + ": all-to-all of " + each.name);
      }
    }
  }
}

// --- Communicators
// --------------------------------------------------------------------------------------

// One exchange of bytes on any communicator.
void CheckOn(MPI_Comm communicator, uint64_t seed, const Algorithm& algorithm) {
  const NamedType bytes{"byte", true, MPI_BYTE};
  const Ranks ranks(communicator);
  const Workload workload{.seed = seed, .most = 60, .zeros_of_eight = 2};
  std::vector<int> sent;
  std::vector<int> received;
  for (int peer = 0; peer < ranks.size; ++peer) {
    sent.push_back(workload.Count(ranks.rank, peer) * kElementBytes);
    received.push_back(workload.Count(peer, ranks.rank) * kElementBytes);
  }
  Side out(bytes.type, sent, 1);
  Side in(bytes.type, received, 2);
  Side expected(bytes.type, received, 2);
  for (size_t peer = 0; peer < sent.size(); ++peer) {
    const int other = static_cast<int>(peer);
    out.Put(peer, BlockBytes(seed, ranks.rank, other, sent[peer] / kElementBytes));
    expected.Put(peer, BlockBytes(seed, other, ranks.rank, received[peer] / kElementBytes));
  }
  const int error =
      Alltoallv(out.base(), out.counts.data(), out.displacements.data(), MPI_BYTE, in.base(),
                in.counts.data(), in.displacements.data(), MPI_BYTE, communicator, algorithm);
  if (error != MPI_SUCCESS || in.memory != expected.memory) {
    Fail(alltoallv::ToString(algorithm) + " on a communicator of " + std::to_string(ranks.size));
  }
}

// Only some ranks call: a barrier over all, as a public implementation has, would hang.
void OnSubCommunicators(const Ranks& world) {
  for (const Algorithm& algorithm : SomeOfEachKind()) {
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_split(world.communicator, world.rank % 2, -world.rank, &part);
    if (world.rank % 2 == 0) CheckOn(part, 61, algorithm);
    MPI_Comm again = MPI_COMM_NULL;
    MPI_Comm_dup(part, &again);  // must not take over what is kept for `part`
    MPI_Comm_free(&part);
    CheckOn(again, 62, algorithm);
    MPI_Comm_free(&again);
  }
}

// What is kept for a communicator goes with it: far more of them than an MPI library has at once.
void CommunicatorsComeAndGo(const Ranks& world) {
  for (int k = 0; k < 200; ++k) {
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_dup(world.communicator, &copy);
    if (k % 20 == 0) {
      CheckOn(copy, 63, {Method::kTuna, 2, 0});
    } else {
      int nothing = 0;
      const std::vector<int> zeros(static_cast<size_t>(world.size), 0);
      Alltoallv(&nothing, zeros.data(), zeros.data(), MPI_INT, &nothing, zeros.data(), zeros.data(),
                MPI_INT, copy, {Method::kLinear});
    }
    MPI_Comm_free(&copy);
  }
}

// Rows and columns of a grid under way at once, each with a persistent exchange.
void TwoCommunicatorsAtOnce(const Ranks& world) {
  MPI_Comm parts[2];
  MPI_Comm_split(world.communicator, world.rank / 2, world.rank, &parts[0]);
  MPI_Comm_split(world.communicator, world.rank % 2, world.rank, &parts[1]);
  for (const Algorithm& algorithm : SomeOfEachKind()) {
    std::vector<int> out[2];
    std::vector<int> in[2];
    std::vector<int> counts[2];
    std::vector<int> places[2];
    std::unique_ptr<PersistentAlltoallv> exchanges[2];
    for (int k = 0; k < 2; ++k) {
      const Ranks ranks(parts[k]);
      for (int peer = 0; peer < ranks.size; ++peer) {
        out[k].push_back(1000 * ranks.rank + peer + k);
        counts[k].push_back(1);
        places[k].push_back(peer);
      }
      in[k].assign(out[k].size(), -1);
      PersistentAlltoallv::Init(out[k].data(), counts[k].data(), places[k].data(), MPI_INT,
                                in[k].data(), counts[k].data(), places[k].data(), MPI_INT, parts[k],
                                algorithm, &exchanges[k]);
    }
    exchanges[0]->Start();
    exchanges[1]->Start();
    exchanges[0]->Wait();
    exchanges[1]->Wait();
    for (int k = 0; k < 2; ++k) {
      const Ranks ranks(parts[k]);
      for (int peer = 0; peer < ranks.size; ++peer) {
        if (in[k][static_cast<size_t>(peer)] != 1000 * peer + ranks.rank + k) {
          Fail(alltoallv::ToString(algorithm) + ": two communicators at once");
        }
      }
    }
  }
  for (MPI_Comm& each : parts) MPI_Comm_free(&each);
}

void ThreadsOnTheirOwnCommunicators(const Ranks& world) {
  MPI_Comm copies[2];
  for (MPI_Comm& each : copies) MPI_Comm_dup(world.communicator, &each);
  std::vector<std::thread> threads;
  for (int k = 0; k < 2; ++k) {
    threads.emplace_back([&, k] {
      for (uint64_t turn = 0; turn < 5; ++turn) {
        CheckOn(copies[k], 70 + turn, {Method::kTuna, 2 + k, 0});
        CheckOn(copies[k], 80 + turn, {Method::kSpreadOut});
      }
    });
  }
  for (std::thread& each : threads) each.join();
  for (MPI_Comm& each : copies) MPI_Comm_free(&each);
}

// Served by the native algorithm.
void BetweenTwoGroups(const Ranks& world) {
  if (world.size < 2) return;
  const int side = world.rank < world.size / 2 ? 0 : 1;
  MPI_Comm local = MPI_COMM_NULL;
  MPI_Comm_split(world.communicator, side, world.rank, &local);
  MPI_Comm between = MPI_COMM_NULL;
  MPI_Intercomm_create(local, 0, world.communicator, side == 0 ? world.size / 2 : 0, 9, &between);
  int others = 0;
  MPI_Comm_remote_size(between, &others);
  std::vector<int> out(static_cast<size_t>(others));
  std::vector<int> in(out.size(), -1);
  const std::vector<int> counts(out.size(), 1);
  std::vector<int> places(out.size());
  std::iota(places.begin(), places.end(), 0);
  const int first = side == 0 ? world.size / 2 : 0;
  for (int peer = 0; peer < others; ++peer) {
    out[static_cast<size_t>(peer)] = 100 * world.rank + first + peer;
  }
  const int error =
      Alltoallv(out.data(), counts.data(), places.data(), MPI_INT, in.data(), counts.data(),
                places.data(), MPI_INT, between, {Method::kTuna, 2, 0});
  for (int peer = 0; peer < others; ++peer) {
    if (error != MPI_SUCCESS ||
        in[static_cast<size_t>(peer)] != 100 * (first + peer) + world.rank) {
      Fail("exchange between two groups");
    }
  }
  MPI_Comm_free(&between);
  MPI_Comm_free(&local);
}

// --- Wrong arguments: one fault each, on a communicator that returns errors
// -------------------------------

void WrongArgumentsAreRefused() {
  MPI_Comm alone = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_SELF, &alone);
  MPI_Comm_set_errhandler(alone, MPI_ERRORS_RETURN);
  struct Row {
    const char* name;
    int send_count, receive_count;
    MPI_Datatype send_type, receive_type;
    const char* algorithm;
    int wanted;
  };
  for (const Row& row :
       {Row{"nothing wrong", 2, 2, MPI_INT, MPI_INT, "tuna:r=2", MPI_SUCCESS},
        Row{"send count", -1, 2, MPI_INT, MPI_INT, "tuna:r=2", MPI_ERR_COUNT},
        Row{"receive count", 2, -1, MPI_INT, MPI_INT, "linear", MPI_ERR_COUNT},
        Row{"send type", 2, 2, MPI_DATATYPE_NULL, MPI_INT, "linear", MPI_ERR_TYPE},
        Row{"receive type", 2, 2, MPI_INT, MPI_DATATYPE_NULL, "xor", MPI_ERR_TYPE},
        Row{"too much to itself", 2, 1, MPI_INT, MPI_INT, "linear", MPI_ERR_TRUNCATE},
        Row{"too little to itself", 1, 2, MPI_INT, MPI_INT, "tuna", MPI_ERR_TRUNCATE},
        Row{"name", 2, 2, MPI_INT, MPI_INT, "tune:r=2", MPI_ERR_ARG},
        Row{"radix", 2, 2, MPI_INT, MPI_INT, "tuna:r=1", MPI_ERR_ARG},
        Row{"parameter", 2, 2, MPI_INT, MPI_INT, "linear:r=2", MPI_ERR_ARG},
        Row{"no name", 2, 2, MPI_INT, MPI_INT, nullptr, MPI_ERR_ARG}}) {
    const int out[] = {1, 2};
    int in[] = {0, 0};
    const int place = 0;
    const int error =
        tutti_alltoallv(out, &row.send_count, &place, row.send_type, in, &row.receive_count, &place,
                        row.receive_type, alone, row.algorithm);
    int error_class = MPI_SUCCESS;
    MPI_Error_class(error, &error_class);
    if (error_class != row.wanted) {
      Fail(std::string("wrong ") + row.name + ": error " + std::to_string(error_class));
    }
    if ((row.wanted == MPI_ERR_ARG) != (*tutti_mpi_message() != '\0')) {
      Fail(std::string("message about wrong ") + row.name);
    }
    if (row.wanted != MPI_SUCCESS && (in[0] != 0 || in[1] != 0)) {
      Fail(std::string("written in spite of wrong ") + row.name);
    }
  }
  MPI_Comm_free(&alone);
}

void Run(bool threads) {
  const Ranks world(MPI_COMM_WORLD);
  const std::vector<NamedType> types = Types();
  ShapesAreTold(types);
  EveryTypeArrives(world, types);
  UniformOfDerivedTypes(world, types);
  OnSubCommunicators(world);
  CommunicatorsComeAndGo(world);
  TwoCommunicatorsAtOnce(world);
  BetweenTwoGroups(world);
  WrongArgumentsAreRefused();
  if (threads) ThreadsOnTheirOwnCommunicators(world);
  for (NamedType each : types) MPI_Type_free(&each.type);
}

}  // namespace
}  // namespace tutti::mpi

int main(int argc, char** argv) {
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  tutti::mpi::Run(level == MPI_THREAD_MULTIPLE);
  return tutti::mpi::Finish();
}
