// What a plan moves, message by message, without streams: for runtimes that put instead of send.
//
// An event is a local copy or a message, sent and received. Levels are the longest chains of
// dependencies: events of one level depend on no other of it, but for sums: what is added to one
// place may be of one level, first what is no AddsOn(). Events of different groups touch nothing in
// common that is written, so they may run in different thread blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/lower/plan.h"

namespace tutti::lower {

struct Event {
  int32_t from = 0, to = 0;  // ranks; equal: a local copy
  bool reduces = false;      // dst = base op what is sent
  Operand src, dst, base;    // src at `from`, the others at `to`
  int64_t count = 0;
  int32_t level = 0, group = 0;
  std::vector<int32_t> overwrites;  // earlier events that read or wrote what dst was
  bool source_overwritten = false;  // later, so it must be known when the source has been read
};

// Whether it adds to what is there already.
inline bool AddsOn(const Event& event) { return event.reduces && event.base == event.dst; }

struct Events {
  int64_t units_per_slot = 1;  // in the coarsest units that the plan allows
  int32_t num_levels = 0, num_groups = 0;
  std::vector<Event> all;  // in an order in which they may run one after the other
};

// `in_place`: input and output are the same memory, and copies between those are left out.
// Otherwise they are not. The plan is one that CheckPlan takes, with weights of 1.
Events EventsOf(const Plan& plan, bool in_place);

}  // namespace tutti::lower
