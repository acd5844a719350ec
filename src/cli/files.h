// Files that commands read and write: what they hold, and that none is written over.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "tutti/base/file_kind.h"
#include "tutti/base/result.h"
#include "tutti/lower/plan.h"

namespace tutti::cli {

// What an input file holds, one of `accepted`. Where that cannot be told (a pipe, damage) the first
// of them, whose reader says what is wrong. kInvalidArgument: another kind, and who takes it.
Result<FileKind> KindOfInput(const std::string& path, std::initializer_list<FileKind> accepted);

// MSCCL XML or an MSCCL++ plan, whole. kInvalidArgument: more than 2^28 bytes, which no judge reads.
Result<std::string> ReadForeignPlan(const std::string& path);

// A file written by `lower --to plan-file`. kCorrupt: damaged, with the path.
Result<Plan> ReadPlanFile(const std::string& path);

// The files that a network expression names.
std::vector<std::string> FilesOf(const std::string& expression);

// kInvalidArgument where writing `output` would replace one of `inputs`, by whatever names: links,
// other paths. Empty names are none; a device may be both.
Status KeepInputs(const std::string& output, const std::vector<std::string>& inputs);

}  // namespace tutti::cli
