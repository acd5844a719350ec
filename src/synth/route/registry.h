// The routers of this folder, for the table in registry.cc: one function a router.
#pragma once

#include "tutti/synth/router.h"

namespace tutti {}  // namespace tutti
