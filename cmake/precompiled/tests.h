// What most tests include.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rooms.h"
