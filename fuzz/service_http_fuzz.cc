// What a client of the metrics' port sends: a request keeps being what it is when more follows it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "service/http.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tutti::service::HttpState;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  tutti::service::HttpRequest request, again;
  const HttpState state = tutti::service::ParseHttp(bytes, request);
  if (state != HttpState::kComplete) return 0;
  if (request.method.empty() || request.path.find(' ') != std::string::npos) std::abort();
  if (tutti::service::ParseHttp(std::string(bytes) + "more", again) != HttpState::kComplete ||
      again.path != request.path || again.bearer != request.bearer)
    std::abort();
  return 0;
}
