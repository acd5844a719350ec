// Assertions for our own bugs. Never on user input: that is a Result (result.h).
//
// TUTTI_CHECK   always on; prints file, line and the condition, then aborts.
// TUTTI_DCHECK  for hot loops: on unless NDEBUG is set or when TUTTI_DCHECKS is.
#pragma once

namespace tutti {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);
}  // namespace tutti

#define TUTTI_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::tutti::CheckFailed(__FILE__, __LINE__, #condition))

#if !defined(NDEBUG) || defined(TUTTI_DCHECKS)
#define TUTTI_DCHECK(condition) TUTTI_CHECK(condition)
#else
#define TUTTI_DCHECK(condition) static_cast<void>(sizeof(condition))
#endif
