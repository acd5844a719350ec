// Call: one call: its arguments on this rank, drawn from (seed, number), and what came of it.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collectives.h"
#include "random.h"
#include "types.h"

namespace tutti::mpi::differential {

// A communicator as the call needs to know it.
struct Group {
  MPI_Comm communicator = MPI_COMM_NULL;
  const char* name = "";
  std::vector<int> peers;  // ranks of the world: of an intercommunicator those of the other side
  bool inter = false;
};

// Memory with guards on both sides of what a side of a call touches.
class Buffer {
 public:
  // Filled from the key.
  void Make(const Places& places, uint64_t key);

  std::byte* address() { return memory_.data() + origin_; }  // of displacement 0
  std::vector<std::byte>& memory() { return memory_; }
  int64_t origin() const { return origin_; }

 private:
  std::vector<std::byte> memory_;
  int64_t origin_ = 0;
};

// How the tested form is called.
enum class Form { kTakenOver, kNonblocking, kByName, kPersistent };
constexpr int kForms = 4;

struct Options {
  uint64_t seed = 1;
  std::vector<std::string> algorithms;  // of the forms by name
  std::vector<std::string> forms;       // of Form, by the names below; all if empty
  std::string collective;               // all if empty
  bool against_messages = false;        // the oracle: ByMessages in place of the native algorithm
};
const char* Name(Form form);

class Call {
 public:
  // `steady` calls have similar sizes, so that `auto` sees a class of sizes that stays.
  Call(const Options& options, uint64_t number, const Group& group, int world_rank, bool steady);

  // Both forms; "" where their answers are the same, else what differs on this rank.
  std::string Run();

  // What is called, for whoever must repeat it.
  std::string Text() const;
  Form form() const { return form_; }

 private:
  // One side of the call on this rank.
  struct Side {
    int bases = 1;  // of an element
    Type type;
    std::vector<int> counts;
    Places places;
  };

  void DrawSignature();
  void DrawTypes();
  void DrawCounts();
  int64_t UnitsOf(int from, int to) const;
  bool DrawPlaces();
  Arguments ArgumentsWith(std::byte* receive) const;
  int RunTested(const Arguments& first, const Arguments& second);
  std::string Compare(const Buffer& native, const Buffer& tested, const char* what) const;

  const Options& options_;
  const uint64_t number_;
  const Group& group_;
  const int world_rank_;
  const bool steady_;
  Random common_;  // drawn alike by all ranks
  Random mine_;
  const Collective* collective_ = nullptr;
  Form form_ = Form::kTakenOver;
  std::string algorithm_;
  bool in_place_ = false;
  int base_ = 0;
  int unit_ = 1;  // bases that blocks have a multiple of
  int64_t max_units_ = 0;
  int sparse_ = 1;  // one in so many blocks is not empty
  bool plain_ = false, empty_ = false;
  Side send_side_, receive_side_;
  Buffer send_, sent_, native_, tested_, tested_too_;
};

}  // namespace tutti::mpi::differential
