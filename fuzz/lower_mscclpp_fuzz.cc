// Any bytes as an MSCCL++ plan: an error, a list of faults, or a proof. The judge must come to an
// end whatever the file says.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tutti/base/check.h"
#include "tutti/lower/mscclpp.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti;
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  const Result<MscclppVerdict> verdict = CheckMscclpp(json);
  if (!verdict) {
    TUTTI_CHECK(!verdict.error().message.empty());
    return 0;
  }
  for (const PlanFault& fault : verdict->faults) TUTTI_CHECK(!fault.message.empty());
  return 0;
}
