// What `tutti service trace` answers, as a page.
#pragma once

#include <string>

#include "common.h"
#include "tutti/page/page.h"

namespace tutti::cli {

// Timeline of an answer of docs/formats/service.md: a lane a rank, times from the first event on. Events without the members that
// it needs are left out.
PageOperations OperationsOf(const std::string& communicator, const Json& answer);

}  // namespace tutti::cli
