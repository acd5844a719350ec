#include "dropin/engine/report.h"

#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <map>
#include <mutex>
#include <tuple>

namespace tutti::mpi::dropin {
namespace {

// Function, ranks, upper end of the class of sizes, method, radix, block_count.
using Key = std::tuple<std::string, int, std::int64_t, int, int, int>;

struct Tally {
  std::int64_t calls = 0;
  double seconds = 0;
  std::int64_t compared_calls = 0;  // those of which is known what the MPI library's own takes
  double own_seconds = 0;
};

struct Book {
  std::mutex mutex;
  std::map<Key, Tally> served;
  std::array<std::int64_t, kNumPassedOn> passed_on{};
};

// Never destroyed: MPI may end after static objects did.
Book& TheBook() {
  static Book* book = new Book;
  return *book;
}

// The smallest power of two that is no less; 0 for 0.
std::int64_t ClassOf(std::int64_t bytes) {
  if (bytes <= 0) return 0;
  std::int64_t power = 1;
  while (power < bytes) power *= 2;
  return power;
}

std::string SizeText(std::int64_t bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
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

const char* NameOf(PassedOn call) {
  switch (call) {
    case PassedOn::kIalltoallv:
      return "Ialltoallv";
    case PassedOn::kIalltoall:
      return "Ialltoall";
    case PassedOn::kAlltoallvInit:
      return "Alltoallv_init";
    case PassedOn::kAlltoallInit:
      return "Alltoall_init";
  }
  return "";
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
  if (call.own_seconds >= 0) {
    ++tally.compared_calls;
    tally.own_seconds += call.own_seconds;
  }
}

void Record(PassedOn call) {
  Book& book = TheBook();
  const std::scoped_lock lock(book.mutex);
  ++book.passed_on[static_cast<std::size_t>(call)];
}

std::string ReportText(const std::string& title) {
  Book& book = TheBook();
  const std::scoped_lock lock(book.mutex);
  std::string text;
  AppendLine(&text, "%s", title.c_str());
  if (!book.served.empty()) {
    AppendLine(&text, "%-14s %6s %14s  %-20s %9s %12s %12s %12s", "call", "ranks", "blocks up to",
               "served by", "calls", "seconds", "us a call", "MPI's own");
  }
  for (const auto& [key, tally] : book.served) {
    const auto& [function, ranks, bytes, method, radix, block_count] = key;
    const alltoallv::Algorithm algorithm{.method = static_cast<alltoallv::Method>(method),
                                         .radix = radix,
                                         .block_count = block_count};
    char own[32] = "-";
    if (tally.compared_calls > 0) {
      std::snprintf(own, sizeof own, "%.2f",
                    tally.own_seconds / static_cast<double>(tally.compared_calls) * 1e6);
    }
    AppendLine(&text, "%-14s %6d %14s  %-20s %9lld %12.6f %12.2f %12s", function.c_str(), ranks,
               SizeText(bytes).c_str(), alltoallv::ToString(algorithm).c_str(),
               static_cast<long long>(tally.calls), tally.seconds,
               tally.seconds / static_cast<double>(tally.calls) * 1e6, own);
  }
  bool any_passed_on = false;
  for (int call = 0; call < kNumPassedOn; ++call) {
    const std::int64_t calls = book.passed_on[static_cast<std::size_t>(call)];
    if (calls == 0) continue;
    any_passed_on = true;
    AppendLine(&text, "%-14s passed on to the MPI library, calls: %lld",
               NameOf(static_cast<PassedOn>(call)), static_cast<long long>(calls));
  }
  if (book.served.empty() && !any_passed_on) AppendLine(&text, "no all-to-all was called");
  return text;
}

}  // namespace tutti::mpi::dropin
