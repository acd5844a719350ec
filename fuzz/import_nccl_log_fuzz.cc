#include "import_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti::import;
  return FuzzReader(LooksLikeNcclLog, ReadNcclLog, data, size);
}
