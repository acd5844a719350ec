// What `tutti service` asks of a daemon or a controller, and how it prints the answer.
#pragma once

#include <string>

#include "common.h"
#include "tutti/base/result.h"
#include "tutti/coll/collective.h"

namespace tutti::cli {

// The answer of who listens at a socket for operators; an error of its own is one. kCorrupt: it is no JSON object.
Result<Json> AskService(const std::string& socket, const Json& request);

// What `service bench` and `service load` call: all-reduce or all-gather. kInvalidArgument names --collective.
Result<CollectiveKind> TimedCollective(const std::string& name);

// As text of a cell of a table.
std::string Cell(const Json& value);

// An answer as JSON, where the user wants that, else by `print`; the exit code.
using AnswerPrinter = void (*)(const Json& answer);
int ShowAnswer(const Program& program, const Result<Json>& answer, AnswerPrinter print);

}  // namespace tutti::cli
