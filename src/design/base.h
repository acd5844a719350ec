// Base topologies: networks whose all-gather cost is known without expanding anything. One function
// a family says which of its members have a given size and degree; bases.cc lists the families.
//
// Invariants  Every entry is true: the network has this size, degree and diameter, and the named
//             schedule costs exactly (tl, tb), its reduce-scatter `reduce_scatter`. base_test.cc
//             builds entries and checks.
// Reference   [direct-connect] Table 9.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/rational.h"
#include "tutti/design/finder.h"

namespace tutti::design {

struct BaseEntry {
  std::string recipe;  // expression of the topology
  int32_t ranks = 0, degree = 0;
  int32_t tl = 0;  // of the all-gather
  Rational tb;     // in M/B
  // Cost of the reduce-scatter, where that is another one: the reversal of an all-gather on the
  // transpose, made as the all-gather here is made. Never of a reverse-symmetric network.
  std::optional<DesignCost> reduce_scatter;
  int32_t diameter = 0;
  bool bidirectional = false;
  bool reverse_symmetric = false;
  bool simple = false;      // no parallel links, no self-loops
  bool self_loops = false;  // has some: no degree expansion
  // The cost is that of the breadth-first schedule; otherwise of a stored one. Theorem 13 asks for
  // simple factors with a bandwidth-optimal breadth-first schedule.
  bool bfb = false;
  // synth/expand reaches this cost too, from a mapped or a stored schedule or as breadth-first
  // broadcast on a family.
  bool expand = true;
  // Every rank has links to two others or more, and from two or more, which theorem 10 asks for.
  bool branches = true;
  // Breadth-first broadcast on the line digraph costs what theorem 10 says; of bidirectional ones
  // and their line digraphs it does (candidate.h, CanLine).
  bool line_by_bfb = false;
};

struct BaseFamily {
  std::string_view name;
  std::string_view reference;  // where its cost is shown
  bool factors;                // may have members that are factors for theorem 13
  // Appends the members of this size and degree, usually one or none. ranks >= 2, degree >= 1.
  // Called from several threads.
  void (*list)(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries);
};

std::span<const BaseFamily> BaseFamilies();

// A simple, reverse-symmetric network on which breadth-first broadcast takes `diameter` steps and
// the best possible bandwidth time.
BaseEntry Optimal(std::string recipe, int32_t ranks, int32_t degree, int32_t diameter);

// One function a family (files of the same name).
void ListComplete(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries);
void ListBipartite(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries);
void ListHamming(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries);
void ListRings(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries);
void ListStages(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries);
void ListKautz(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries);
void ListGenkautz(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries);
// Up to 512 ranks and 2048 ports (genkautz_mod.cc).
void ListGenkautzMod(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries);
void ListDebruijn(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries);
void ListCirculant(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries);
void ListDirectedCirculant(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries);
void ListDircirculant(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries);
void ListFound(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries);
void ListStored(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries);
// Distance-regular graphs, Table 8 (distreg.cc).
void ListDistreg(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries);

}  // namespace tutti::design
