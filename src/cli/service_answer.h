// What `tutti service` asks of a daemon or a controller, and how it prints the answer.
#pragma once

#include <string>

#include "common.h"
#include "tutti/base/result.h"

namespace tutti::cli {

// The answer of who listens at a socket for operators; an error of its own is one. kCorrupt: it is no JSON object.
Result<Json> AskService(const std::string& socket, const Json& request);

// As text of a cell of a table.
std::string Cell(const Json& value);

// An answer as JSON, where the user wants that, else by `print`; the exit code.
using AnswerPrinter = void (*)(const Json& answer);
int ShowAnswer(const Program& program, const Result<Json>& answer, AnswerPrinter print);

}  // namespace tutti::cli
