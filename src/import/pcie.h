// Speeds of PCIe links.
#pragma once

#include <cstdint>
#include <string>

namespace tutti::import {

// "16.0 GT/s PCIe" and "16" lanes in bytes a second, one way; 0 where they say nothing.
int64_t PcieBandwidth(const std::string& speed, const std::string& lanes);

// Whether there are such links, or the text says that it is not known: "", "Unknown", 255 lanes
// (a kernel's "unknown") and, since NCCL writes them where a port is not shown, 0 lanes.
bool IsPcieSpeed(const std::string& speed);
bool IsPcieWidth(const std::string& lanes);

}  // namespace tutti::import
