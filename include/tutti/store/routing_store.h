// Routings in files: `.routes.json` for people, `.routes` (binary, checksummed, about a byte a hop)
// for everything else. A file holds the topology too, so that it can be judged alone. Format:
// docs/formats/routing.md.
//
// Model    The order of paths is kept. What is structurally fine is read even when the routing is
//          wrong: CheckRouting of verify judges that. A binary file holds chains of links only.
// Memory   Files are written block by block; reading holds the routing.
// Threads  Any number at once.
// Errors   kIo: the operating system refused: path, permission, a full disk. kCorrupt: truncated,
//          damaged (checksum), a version this program does not know, or no routing, each named with
//          the place in the file. kInvalidArgument: what is to be written breaks R1 .. R4, or is no
//          chain of links where the file is to be binary. kCancelled. Writers write to a temporary
//          name beside the target and rename: a failed or interrupted write leaves the old file.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "tutti/base/result.h"
#include "tutti/sched/routing.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct RoutingFile {
  Topology topology;
  Routing routing;
};

// By the ending of the path: `.json` is JSON, anything else binary.
Status WriteRoutingFile(const std::string& path, const Topology& topology, const Routing& routing);
// By the first bytes of the file.
Result<RoutingFile> ReadRoutingFile(const std::string& path);

// The routing keeps R1, R2 and R4.
Result<std::string> RoutingToJson(const Topology& topology, const Routing& routing);
Result<RoutingFile> RoutingFromJson(const std::string& text);
// The bytes of a binary file.
Result<std::string> RoutingToBinary(const Topology& topology, const Routing& routing);
Result<RoutingFile> RoutingFromBinary(std::span<const std::byte> bytes);

}  // namespace tutti
