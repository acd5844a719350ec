#include "files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "tutti/base/file.h"
#include "tutti/lower/plan_file.h"
#include "tutti/topo/expression.h"

namespace tutti::cli {
namespace {

void AddFiles(const ExpressionTree& tree, std::vector<std::string>& files) {
  if (tree.family.empty()) files.push_back(tree.text);
  for (const ExpressionTree& operand : tree.operands) AddFiles(operand, files);
}

// Device and inode of a regular file.
std::optional<std::pair<dev_t, ino_t>> IdentityOf(const std::string& path) {
  struct stat info {};
  if (path.empty() || ::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode))
    return std::nullopt;
  return std::pair(info.st_dev, info.st_ino);
}

}  // namespace

Result<FileKind> KindOfInput(const std::string& path, std::initializer_list<FileKind> accepted) {
  const Result<FileKind> kind = KindOfFile(path);
  if (!kind) return kind;
  if (*kind == FileKind::kUnknown) return *accepted.begin();
  if (std::find(accepted.begin(), accepted.end(), *kind) != accepted.end()) return kind;
  return tl::unexpected(WrongKind(path, *kind, *accepted.begin()));
}

Result<std::string> ReadForeignPlan(const std::string& path) {
  constexpr uintmax_t kMaxBytes = uintmax_t{1} << 28;
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (!error && bytes > kMaxBytes)
    return InvalidArgument(
        fmt::format("{}: too large to judge: {} bytes, at most {}", path, bytes, kMaxBytes));
  return ReadFile(path);
}

Result<Plan> ReadPlanFile(const std::string& path) {
  const Result<std::string> bytes = ReadFile(path);
  if (!bytes) return tl::unexpected(bytes.error());
  Result<Plan> plan = PlanFromFile(*bytes);
  if (!plan) return MakeError(plan.error().code, path + ": " + plan.error().message);
  return plan;
}

std::vector<std::string> FilesOf(const std::string& expression) {
  std::vector<std::string> files;
  if (const Result<ExpressionTree> tree = ParseExpressionTree(expression)) AddFiles(*tree, files);
  return files;
}

Status KeepInputs(const std::string& output, const std::vector<std::string>& inputs) {
  const auto written = IdentityOf(output);
  if (!written) return {};
  for (const std::string& input : inputs)
    if (IdentityOf(input) == written)
      return InvalidArgument(
          output == input
              ? fmt::format("{} is read and would be overwritten", input)
              : fmt::format("{} is read and would be overwritten as {}", input, output));
  return {};
}

}  // namespace tutti::cli
