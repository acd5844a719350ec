// tutti bench: becomes the program tutti-experiments, which has the papers' figures in it.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "bench_flags.h"
#include "tutti/base/process.h"

namespace tutti::cli {

void AddBench(Program& program) {
  const auto flags = std::make_shared<BenchFlags>();
  AddBenchCommand(program, flags).Runs([&program, flags] {
    const Result<std::string> path =
        FindProgram("tutti-experiments", "build it with -DTUTTI_EXPERIMENTS=ON");
    if (!path) return Report(path.error());
    std::vector<char*> arguments;
    for (std::string& argument : program.arguments) arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    ::execv(path->c_str(), arguments.data());
    return Report({ErrorCode::kIo, fmt::format("{}: {}", *path, std::strerror(errno))});
  });
}

}  // namespace tutti::cli
