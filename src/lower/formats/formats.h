// One function a format; the options that several formats take.
#pragma once

#include "tutti/lower/formats.h"

namespace tutti::lower {

LoweringFormat MscclXmlFormat();
LoweringFormat MscclppFormat();
LoweringFormat NcclGraphFormat();
LoweringFormat ChakraFormat();
LoweringFormat PlanFormat();
LoweringFormat PlanFileFormat();
LoweringFormat RoutesPerRankFormat();
LoweringFormat RouteTablesFormat();

extern const FormatOption kMinSize, kMaxSize, kBoxRanks, kInPlace;

}  // namespace tutti::lower
