// Sleeping on a 32-bit word of memory that may be shared between processes (futex(2)).
//
// Threads     Any thread of any process that maps the word. A wait returns when the word no longer
//             holds `expected`, on a wake, on a signal, or after `timeout_ns`: callers look again.
#pragma once

#include <atomic>
#include <cstdint>

namespace tutti {

void FutexWait(std::atomic<uint32_t>& word, uint32_t expected, int64_t timeout_ns = -1);
void FutexWakeAll(std::atomic<uint32_t>& word);

}  // namespace tutti
