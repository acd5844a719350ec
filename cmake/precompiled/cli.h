// What most files of commands include.
#pragma once

#include <nlohmann/json.hpp>

#include "rooms.h"
