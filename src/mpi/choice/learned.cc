#include "choice/learned.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace tutti::mpi {
namespace {

using tune::TuningDatabase;

struct Process {
  std::mutex mutex;
  bool saves_at_end = false;
  std::optional<TuningDatabase> read;
  TuningDatabase learned;
};

Process& ThisProcess() {
  static Process process;
  return process;
}

std::string Path() {
  return tune::TuningDatabasePath(std::getenv("TUTTI_MPI_FILE"), std::getenv("XDG_CONFIG_HOME"),
                                  std::getenv("HOME"));
}

void Say(const Error& error, const char* consequence) {
  std::fprintf(stderr, "tutti: %s; %s\n", error.message.c_str(), consequence);
}

// First of all in MPI_Finalize.
int SaveLearned(MPI_Comm /*self*/, int /*key*/, void* /*value*/, void* /*extra*/) {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Process& process = ThisProcess();
  const std::scoped_lock lock(process.mutex);
  const std::string path = Path();
  if (rank != 0 || process.learned.best.empty() || path.empty()) return MPI_SUCCESS;
  const char* chosen = std::getenv("TUTTI_MPI_FILE");
  if (chosen == nullptr || *chosen == '\0') {
    const auto existing = tune::ReadTuningDatabase(path);
    if (!existing || !existing->has_value()) return MPI_SUCCESS;
  }
  if (const Status saved = tune::UpdateTuningDatabase(path, process.learned); !saved) {
    Say(saved.error(), "what was measured is not remembered");
  }
  process.learned = TuningDatabase();
  return MPI_SUCCESS;
}

const TuningDatabase& ReadOnce() {
  Process& process = ThisProcess();
  const std::scoped_lock lock(process.mutex);
  if (!process.read) {
    const std::string path = Path();
    auto database = tune::ReadTuningDatabase(path);
    if (!database) Say(database.error(), "defaults are used");
    process.read = database && *database ? std::move(**database) : TuningDatabase();
  }
  return *process.read;
}

}  // namespace

int ShareTuningDatabase(MPI_Comm communicator, int rank, TuningDatabase* database) {
  std::string text;
  if (rank == 0) text = tune::FormatTuningDatabase(ReadOnce());
  int length = static_cast<int>(text.size());
  if (const int error = PMPI_Bcast(&length, 1, MPI_INT, 0, communicator)) return error;
  text.resize(static_cast<size_t>(length));
  if (const int error = PMPI_Bcast(text.data(), length, MPI_CHAR, 0, communicator)) return error;
  // Written by FormatTuningDatabase a moment ago: it can be read.
  *database = tune::ParseTuningDatabase(text).value_or(TuningDatabase());
  return MPI_SUCCESS;
}

bool RemembersTuningData() { return ReadOnce() != TuningDatabase(); }

int HasTuningData(MPI_Comm communicator, int rank, bool* has_data) {
  int some = rank == 0 && RemembersTuningData() ? 1 : 0;
  const int error = PMPI_Bcast(&some, 1, MPI_INT, 0, communicator);
  *has_data = some != 0;
  return error;
}

void Learn(const tune::Situation& situation, const tune::Measured& measured) {
  Process& process = ThisProcess();
  const std::scoped_lock lock(process.mutex);
  process.learned.best[situation] = measured;
  if (std::exchange(process.saves_at_end, true)) return;
  int key = MPI_KEYVAL_INVALID;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &SaveLearned, &key, nullptr);
  PMPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
}

}  // namespace tutti::mpi
