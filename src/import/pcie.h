// Speeds of PCIe links.
#pragma once

#include <cstdint>
#include <string>

namespace tutti::import {

// "16.0 GT/s PCIe" and "16" lanes in bytes a second, one way; 0 where they say nothing.
int64_t PcieBandwidth(const std::string& speed, const std::string& lanes);

}  // namespace tutti::import
