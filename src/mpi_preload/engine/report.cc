#include "engine/report.h"

#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <map>
#include <mutex>
#include <tuple>

#include "engine/median.h"
#include "engine/settings.h"

namespace tutti::mpi::preload {
namespace {

// Function, ranks, upper end of the class of sizes, method, radix, block_count.
using Key = std::tuple<std::string, int, int64_t, int, int, int>;

struct Tally {
  int64_t calls = 0;
  double seconds = 0;
  Median call;
  Median native;  // over the calls of which is known what the native algorithm takes
};

struct Book {
  std::mutex mutex;
  std::map<Key, Tally> served;
  std::array<int64_t, kNumPassedOn> passed_on{};
};

// Never destroyed: MPI may end after static objects did.
Book& TheBook() {
  static Book* book = new Book;
  return *book;
}

// The smallest power of two that is no less; 0 for 0.
int64_t ClassOf(int64_t bytes) {
  if (bytes <= 0) return 0;
  int64_t power = 1;
  while (power < bytes) power *= 2;
  return power;
}

std::string SizeText(int64_t bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && bytes % 1024 == 0 && unit < 4) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + " " + units[unit];
}

__attribute__((format(printf, 2, 3))) void AppendLine(std::string* text, const char* format, ...) {
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text->append("tutti: ").append(line).push_back('\n');
}

// As in MPI, without its prefix.
std::string FormName(PassedOn call) {
  constexpr const char* kAllToAlls[] = {"Ialltoallv", "Ialltoall", "Alltoallv_init",
                                        "Alltoall_init"};
  constexpr size_t kPrefix = 4;  // "MPI_"
  const int number = static_cast<int>(call);
  const int collective = number - static_cast<int>(PassedOn::kFirstNonblocking);
  if (collective < 0) return kAllToAlls[number];
  std::string name =
      NameOf(static_cast<Collective>(collective % kNumCollectives)).function + kPrefix;
  if (collective >= kNumCollectives) return name + "_init";
  name.front() = static_cast<char>(name.front() + ('a' - 'A'));
  return "I" + name;
}

}  // namespace

void Record(const ServedCall& call) {
  Book& book = TheBook();
  const Key key{call.function,
                call.ranks,
                ClassOf(call.largest_block_bytes),
                static_cast<int>(call.algorithm.method),
                call.algorithm.radix,
                call.algorithm.block_count};
  const std::scoped_lock lock(book.mutex);
  Tally& tally = book.served[key];
  ++tally.calls;
  tally.seconds += call.seconds;
  tally.call.Add(call.seconds);
  if (call.native_seconds >= 0) tally.native.Add(call.native_seconds);
}

void Record(PassedOn call) {
  Book& book = TheBook();
  const std::scoped_lock lock(book.mutex);
  ++book.passed_on[static_cast<size_t>(call)];
}

std::string ReportText(const std::string& title) {
  Book& book = TheBook();
  const std::scoped_lock lock(book.mutex);
  std::string text;
  AppendLine(&text, "%s", title.c_str());
  if (!book.served.empty()) {
    AppendLine(&text, "%-24s %6s %14s  %-20s %9s %12s %12s %12s", "call", "ranks", "blocks up to",
               "served by", "calls", "seconds", "median us", "MPI's own");
  }
  for (const auto& [key, tally] : book.served) {
    const auto& [function, ranks, bytes, method, radix, block_count] = key;
    const alltoallv::Algorithm algorithm{.method = static_cast<alltoallv::Method>(method),
                                         .radix = radix,
                                         .block_count = block_count};
    char native[32] = "-";
    if (tally.native.any())
      std::snprintf(native, sizeof native, "%.2f", tally.native.seconds() * 1e6);
    AppendLine(&text, "%-24s %6d %14s  %-20s %9lld %12.6f %12.2f %12s", function.c_str(), ranks,
               SizeText(bytes).c_str(), alltoallv::ToString(algorithm).c_str(),
               static_cast<long long>(tally.calls), tally.seconds, tally.call.seconds() * 1e6,
               native);
  }
  bool any_passed_on = false;
  for (int call = 0; call < kNumPassedOn; ++call) {
    const int64_t calls = book.passed_on[static_cast<size_t>(call)];
    if (calls == 0) continue;
    any_passed_on = true;
    AppendLine(&text, "%-24s passed on to the MPI library, calls: %lld",
               FormName(static_cast<PassedOn>(call)).c_str(), static_cast<long long>(calls));
  }
  if (book.served.empty() && !any_passed_on) AppendLine(&text, "no collective was called");
  return text;
}

}  // namespace tutti::mpi::preload
