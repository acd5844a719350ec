#include "tutti/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace tutti {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: internal error: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace tutti
