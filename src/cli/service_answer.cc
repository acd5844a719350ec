#include "service_answer.h"

#include <fmt/format.h>

#include "tutti/service/daemon.h"

namespace tutti::cli {

Result<Json> AskService(const std::string& socket, const Json& request) {
  const Result<std::string> text = service::AskDaemon(socket, request.dump());
  if (!text) return tl::unexpected(text.error());
  Json answer = Json::parse(*text, nullptr, false);
  if (!answer.is_object())
    return MakeError(ErrorCode::kCorrupt, fmt::format("{}: the answer is no JSON object", socket));
  if (answer.contains("error")) return InvalidArgument(answer["error"].get<std::string>());
  return answer;
}

Result<CollectiveKind> TimedCollective(const std::string& name) {
  const Result<CollectiveKind> kind = ParseCollectiveKind(name);
  if (!kind) return MakeError(kind.error().code, "--collective: " + kind.error().message);
  if (*kind != CollectiveKind::kAllReduce && *kind != CollectiveKind::kAllGather)
    return InvalidArgument(
        fmt::format("--collective: got '{}', wanted all-reduce or all-gather", name));
  return *kind;
}

std::string Cell(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

int ShowAnswer(const Program& program, const Result<Json>& answer, AnswerPrinter print) {
  if (!answer) return Report(answer.error());
  if (program.json)
    Print(*answer);
  else
    print(*answer);
  return kDone;
}

}  // namespace tutti::cli
