#include "tutti/base/cancel.h"

#include <atomic>

namespace tutti {
namespace {

std::atomic<bool> requested{false};
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

void RequestCancel() { requested.store(true, std::memory_order_relaxed); }
bool CancelRequested() { return requested.load(std::memory_order_relaxed); }
void ResetCancel() { requested.store(false, std::memory_order_relaxed); }
Error CancelledError() { return {ErrorCode::kCancelled, "interrupted"}; }

}  // namespace tutti
