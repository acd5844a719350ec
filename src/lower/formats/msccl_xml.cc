// --to msccl-xml
#include "tutti/lower/msccl_xml.h"

#include "formats.h"

namespace tutti::lower {
namespace {

const FormatOption kDialect{
    "dialect",
    "Which runtime will read it: msccl (microsoft/msccl), executor-nccl (Azure) or rccl (ROCm)",
    "executor-nccl"};
const FormatOption kProtocol{
    "protocol", "Wire protocol: Simple, LL or LL128", "Simple", {"Simple", "LL", "LL128"}};

Result<LoweredText> LowerToMscclXml(const Topology& topology, const Schedule& schedule,
                                    const FormatOptionValues& values) {
  const Result<MscclDialect> dialect = ParseMscclDialect(values.Text(kDialect));
  if (!dialect) return tl::unexpected(dialect.error());
  const Result<int64_t> min_bytes = values.Bytes(kMinSize);
  if (!min_bytes) return tl::unexpected(min_bytes.error());
  const Result<int64_t> max_bytes = values.Bytes(kMaxSize);
  if (!max_bytes) return tl::unexpected(max_bytes.error());
  const Result<std::string> xml = ToMscclXml(topology, schedule,
                                             {.dialect = *dialect,
                                              .protocol = values.Text(kProtocol),
                                              .min_bytes = *min_bytes,
                                              .max_bytes = *max_bytes,
                                              .in_place = values.On(kInPlace)});
  if (!xml) return tl::unexpected(xml.error());
  const Result<std::vector<PlanFault>> faults = CheckMscclXml(*xml, *dialect);
  if (!faults) return tl::unexpected(faults.error());
  if (!faults->empty())
    return MakeError(ErrorCode::kInfeasible,
                     "the lowered file does not pass the checker (nothing was written): " +
                         faults->front().message);
  const std::string name = values.Text(kDialect);
  return LoweredText{*xml, {}, true, name + " would read it", {{"dialect", name}}};
}

}  // namespace

LoweringFormat MscclXmlFormat() {
  return {.name = "msccl-xml",
          .description = "MSCCL algorithm XML for the runtime that --dialect names",
          .extension = ".xml",
          .options = {&kDialect, &kProtocol, &kMinSize, &kMaxSize, &kInPlace},
          .schedule = LowerToMscclXml};
}

}  // namespace tutti::lower
