// What: the one place where the examples exchange blocks, and what they share: flags and the times
// of communication. The programs know nothing of Tutti: preload libtutti_mpi.so to have it serve
// their MPI_Alltoallv. Only in simulation (SMPI), where nothing can be preloaded, they call Tutti's
// algorithms by the name in TUTTI_ALLTOALLV.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#ifdef TUTTI_MPI_SMPI
#include "tutti/mpi/alltoallv.h"
#endif

namespace examples {

// --name value ... ; names that no Get() asked for are reported by Finish().
class Flags {
 public:
  Flags(int argc, char** argv) {
    for (int i = 1; i < argc; i += 2) {
      const std::string name = argv[i];
      if (name.rfind("--", 0) != 0 || i + 1 == argc) {
        Reject("got \"" + name + "\", wanted --name value");
        return;
      }
      given_[name.substr(2)] = argv[i + 1];
    }
  }

  std::string Get(const std::string& name, const std::string& otherwise) {
    const auto found = given_.find(name);
    if (found == given_.end()) return otherwise;
    const std::string value = found->second;
    given_.erase(found);
    return value;
  }

  int64_t GetNumber(const std::string& name, int64_t otherwise, int64_t least) {
    const std::string text = Get(name, std::to_string(otherwise));
    char* end = nullptr;
    const int64_t number = std::strtoll(text.c_str(), &end, 10);
    if (text.empty() || *end != '\0' || number < least || number > INT32_MAX) {
      Reject("--" + name + ": got \"" + text + "\", wanted a whole number from " +
             std::to_string(least));
      return otherwise;
    }
    return number;
  }

  void Reject(const std::string& message) {
    if (error_.empty()) error_ = message;
  }

  // What is wrong with the flags, or nothing.
  std::string Finish() {
    if (!given_.empty()) Reject("--" + given_.begin()->first + " is no flag of this program");
    return error_;
  }

 private:
  std::map<std::string, std::string> given_;
  std::string error_;
};

struct Communication {
  double seconds = 0;
  int64_t calls = 0;
};

// Blocks of `type`, one behind the other in the order of ranks on both sides.
template <class Element>
int ExchangeBlocks(const std::vector<Element>& send, const std::vector<int>& send_counts,
                   std::vector<Element>* receive, const std::vector<int>& receive_counts,
                   MPI_Datatype type, MPI_Comm communicator, Communication* communication) {
  const auto starts = [](const std::vector<int>& counts) {
    std::vector<int> start(counts.size(), 0);
    for (size_t i = 1; i < counts.size(); ++i) start[i] = start[i - 1] + counts[i - 1];
    return start;
  };
  const std::vector<int> send_starts = starts(send_counts);
  const std::vector<int> receive_starts = starts(receive_counts);
  const double since = MPI_Wtime();
#ifdef TUTTI_MPI_SMPI
  const char* const name = std::getenv("TUTTI_ALLTOALLV");
  const auto algorithm = tutti::alltoallv::ParseAlgorithm(name == nullptr ? "mpi" : name);
  if (!algorithm.has_value()) return MPI_ERR_ARG;
  const int error = tutti::mpi::Alltoallv(send.data(), send_counts.data(), send_starts.data(), type,
                                          receive->data(), receive_counts.data(),
                                          receive_starts.data(), type, communicator, *algorithm);
#else
  const int error =
      MPI_Alltoallv(send.data(), send_counts.data(), send_starts.data(), type, receive->data(),
                    receive_counts.data(), receive_starts.data(), type, communicator);
#endif
  communication->seconds += MPI_Wtime() - since;
  ++communication->calls;
  return error;
}

// Ends the program on all ranks with one line from rank 0.
inline int Refuse(int rank, const char* program, const std::string& message) {
  if (rank == 0) std::fprintf(stderr, "%s: %s\n", program, message.c_str());
  MPI_Finalize();
  return 2;
}

// What main() returns: `program` between MPI_Init and MPI_Finalize.
inline int RunProgram(int (*program)(int, char**), int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int result = program(argc, argv);
  // Refused flags have ended MPI already.
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized == 0) MPI_Finalize();
  return result;
}

}  // namespace examples
