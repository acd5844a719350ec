// Any bytes as MSCCL XML, in each dialect: an error, a list of faults, or a proof. The judge must
// come to an end whatever the file says.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tutti/base/check.h"
#include "tutti/lower/msccl_xml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti;
  const std::string_view xml(reinterpret_cast<const char*>(data), size);
  for (const MscclDialect dialect :
       {MscclDialect::kMsccl, MscclDialect::kExecutorNccl, MscclDialect::kRccl}) {
    const Result<std::vector<PlanFault>> faults = CheckMscclXml(xml, dialect);
    if (!faults) continue;
    for (const PlanFault& fault : *faults) TUTTI_CHECK(!fault.message.empty());
  }
  return 0;
}
