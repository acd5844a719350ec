// HTTP, as much of it as a scrape of metrics needs: one request a connection, its answer, and the end.
//
// Trust       Any bytes. Bodies are not read; a request that has one is answered as if it had none.
// Reference   RFC 9112
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "text_server.h"

namespace tutti::service {

struct HttpRequest {
  std::string method, path;
  std::string bearer;  // of Authorization: Bearer; empty: none
};

struct HttpAnswer {
  int status = 200;
  std::string body = {};
  std::string type = "text/plain; charset=utf-8";
};

enum class HttpState { kIncomplete, kBad, kComplete };
// From the bytes so far.
HttpState ParseHttp(std::string_view bytes, HttpRequest& request);
// With head; the connection closes behind it.
std::string ToText(const HttpAnswer& answer, bool with_body);

class HttpProtocol final : public TextProtocol {
 public:
  explicit HttpProtocol(std::function<HttpAnswer(const HttpRequest&)> answer)
      : answer_(std::move(answer)) {}
  bool Hear(std::string& in, std::string& out) override;

 private:
  std::function<HttpAnswer(const HttpRequest&)> answer_;
};

}  // namespace tutti::service
