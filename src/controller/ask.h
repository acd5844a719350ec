// What a daemon answers, as JSON; an error of its own is one. Many daemons at once.
#pragma once

#include <cstddef>
#include <functional>
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

// Calls ask(0), ..., ask(count - 1), so many at once as threads can be had, up to `at_once`: they wait, each for its daemon.
// `ask` throws nothing.
void AskAtOnce(size_t count, int32_t at_once, const std::function<void(size_t)>& ask);

}  // namespace tutti::controller
