// Reads a schedule from a file and proves it, or says what is wrong with it.
#include <iostream>

#include "tutti/store/store.h"
#include "tutti/verify/verifier.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: prove_file FILE.sched\n";
    return 2;
  }
  const auto file = tutti::ReadScheduleFile(argv[1]);
  if (!file) {
    std::cerr << "prove_file: " << file.error().message << "\n";
    return 2;
  }
  const auto report = tutti::Verify(file->topology, file->schedule.collective, file->schedule);
  for (const tutti::Violation& violation : report.violations)
    std::cout << violation.message << "\n";
  std::cout << argv[1] << ": " << (report.verified() ? "proven correct" : "NOT correct") << "\n";
  return report.verified() ? 0 : 1;
}
