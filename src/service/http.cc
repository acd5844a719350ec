#include "http.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace tutti::service {
namespace {

constexpr size_t kMaxHead = 8192;

bool IsVisible(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127; });
}

bool IsSameWord(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

const char* ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    default:
      return "Error";
  }
}

}  // namespace

HttpState ParseHttp(std::string_view bytes, HttpRequest& request) {
  size_t end = bytes.find("\r\n\r\n"), gap = 4;
  if (const size_t bare = bytes.find("\n\n"); bare < end) end = bare, gap = 2;
  if (end == std::string_view::npos)
    return bytes.size() > kMaxHead ? HttpState::kBad : HttpState::kIncomplete;
  if (end + gap > kMaxHead) return HttpState::kBad;
  std::string_view head = bytes.substr(0, end);
  const auto take_line = [&head] {
    std::string_view line = head.substr(0, head.find('\n'));
    head.remove_prefix(std::min(head.size(), line.size() + 1));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    return line;
  };
  const std::string_view first = take_line();
  const size_t space = first.find(' '), last = first.rfind(' ');
  if (space == std::string_view::npos || last == space) return HttpState::kBad;
  const std::string_view method = first.substr(0, space);
  const std::string_view target = first.substr(space + 1, last - space - 1);
  if (!IsVisible(method) || !IsVisible(target) || first.substr(last + 1).rfind("HTTP/1.", 0) != 0)
    return HttpState::kBad;
  request = {};
  request.method = method;
  request.path = target.substr(0, target.find('?'));
  while (!head.empty()) {
    const std::string_view line = take_line();
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) return HttpState::kBad;
    if (!IsSameWord(line.substr(0, colon), "authorization")) continue;
    std::string_view value = line.substr(colon + 1);
    value.remove_prefix(std::min(value.size(), value.find_first_not_of(' ')));
    constexpr std::string_view kScheme = "bearer ";
    if (value.size() > kScheme.size() && IsSameWord(value.substr(0, kScheme.size()), kScheme))
      request.bearer = value.substr(kScheme.size());
  }
  return HttpState::kComplete;
}

std::string ToText(const HttpAnswer& answer, bool with_body) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n{}",
      answer.status, ReasonOf(answer.status), answer.type, answer.body.size(),
      answer.status == 401   ? "WWW-Authenticate: Bearer\r\n"
      : answer.status == 405 ? "Allow: GET, HEAD\r\n"
                             : "",
      with_body ? answer.body : "");
}

bool HttpProtocol::Hear(std::string& in, std::string& out) {
  HttpRequest request;
  switch (ParseHttp(in, request)) {
    case HttpState::kIncomplete:
      return true;
    case HttpState::kBad:
      out += ToText({.status = 400, .body = "no HTTP request\n"}, true);
      break;
    case HttpState::kComplete:
      if (request.method == "GET" || request.method == "HEAD")
        out += ToText(answer_(request), request.method == "GET");
      else
        out += ToText({.status = 405, .body = "GET and HEAD are known\n"}, true);
      break;
  }
  in.clear();
  return false;
}

}  // namespace tutti::service
