#include "history.h"

#include "world.h"

namespace tutti::histories {

HistoryOutcome RunHistory(const HistoryOptions& options) {
  World world(options);
  return world.Run();
}

}  // namespace tutti::histories
