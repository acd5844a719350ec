// History: what daemons, the ranks of tenants and controllers do in some seconds of simulated time, drawn from a seed, and whether
// what the service promises was kept.
//
// Model       Two to four hosts, each with the daemon as it is shipped, over a SimulatedKernel. One or two communicators run
//             programs of collectives, and messages between some ranks, whose every element is known; an operator changes strategies meanwhile, or
//             the controller does, as it is shipped. Ways through the network are lost and come back, connections are
//             reset, segments lost, daemons stopped for a while; in about half of the histories something dies, too: a
//             rank, a daemon (which may come again), or a host without a word, at a drawn time or in a drawn
//             phase of a change; or a rank leaves early, or calls what others do not. Ranks that are left may shrink.
// Checked     H1  Every rank completes its operations once each, in order, and every element is right.
//             H2  All ranks run an operation in one epoch; a rank's epochs never fall.
//             H3  Where nothing died all complete, and every request for a change is answered.
//             H4  Who lives where something died completes, or is told within a second of simulated time (11 where a host fell
//                 silent), in words that name what died.
//             H5  Who is left and asks to shrink goes on, all in one communicator; that runs right, too.
//             H6  At the end no daemon has communicators, descriptors or ranks that it did not begin with.
#pragma once

#include <cstdint>
#include <string>

namespace tutti::histories {

// A rule that is broken on purpose, which histories must find.
enum class SeededFault : uint8_t {
  kNone,
  kOwnNumber,      // a daemon takes its own number for the maximum
  kNoHold,         // who holds launches all the same
  kResumesWrong,   // a receiver asks to go on eight bytes too far
  kForgetsAFrame,  // a daemon says that it has heard a frame that it has not
};

struct HistoryOptions {
  uint64_t seed = 0;
  SeededFault fault = SeededFault::kNone;
  bool prints = false;  // what happens, as it happens
};

struct HistoryOutcome {
  std::string broken;   // the first promise that was not kept, and by whom; empty: none
  uint64_t digest = 0;  // of all that ranks heard, and when
  int64_t segments = 0, simulated_ns = 0;
  int64_t operations = 0;  // completed, over all ranks
  int64_t changes = 0, refused_changes = 0;
  int64_t lost_ways = 0;  // that connections left
  int64_t failed_ranks = 0, shrunk_ranks = 0;
  bool something_died = false;
};

HistoryOutcome RunHistory(const HistoryOptions& options);

}  // namespace tutti::histories
