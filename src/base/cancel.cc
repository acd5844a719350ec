#include "tutti/base/cancel.h"

#include <atomic>

namespace tutti {
namespace {

std::atomic<bool> requested{false};
std::atomic<int> input_waits{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

}  // namespace

void RequestCancel() { requested.store(true, std::memory_order_relaxed); }
bool CancelRequested() { return requested.load(std::memory_order_relaxed); }
void ResetCancel() { requested.store(false, std::memory_order_relaxed); }
InputWait::InputWait() { input_waits.fetch_add(1, std::memory_order_relaxed); }
InputWait::~InputWait() { input_waits.fetch_sub(1, std::memory_order_relaxed); }
bool InputIsAwaited() { return input_waits.load(std::memory_order_relaxed) > 0; }
Error CancelledError() { return {ErrorCode::kCancelled, "interrupted"}; }

}  // namespace tutti
