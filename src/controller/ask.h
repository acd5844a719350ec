// What a daemon answers, as JSON; an error of its own is one.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tutti/controller/controller.h"

namespace tutti::controller {

inline Result<nlohmann::json> AskJson(DaemonLink& link, const nlohmann::json& request) {
  const Result<std::string> text = link.Ask(request.dump());
  if (!text) return tl::unexpected(text.error());
  nlohmann::json answer = nlohmann::json::parse(*text, nullptr, false);
  if (!answer.is_object()) return MakeError(ErrorCode::kCorrupt, "its answer is no JSON object");
  if (answer.contains("error"))
    return InvalidArgument(answer["error"].is_string() ? answer["error"].get<std::string>()
                                                       : answer["error"].dump());
  return answer;
}

}  // namespace tutti::controller
