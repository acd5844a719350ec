// Strong ids: dense 0-based integers that cannot be mixed up.
//
//   for (LinkId link : topology.Links()) total[link.index()] += ...;
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace tutti {

template <class Tag>
struct Id {
  int32_t value = 0;

  constexpr size_t index() const { return static_cast<size_t>(value); }
  friend constexpr bool operator==(Id, Id) = default;
  friend constexpr auto operator<=>(Id, Id) = default;
};

using NodeId = Id<struct NodeTag>;    // a vertex of the network; rank r is node r
using LinkId = Id<struct LinkTag>;    // a directed edge of the network
using ShardId = Id<struct ShardTag>;  // see coll/collective.h
using PathId = Id<struct PathTag>;    // see sched/routing.h

template <class IdType>
class IdRange {
 public:
  class Iterator {
   public:
    constexpr explicit Iterator(int32_t value) : value_(value) {}
    constexpr IdType operator*() const { return IdType{value_}; }
    constexpr Iterator& operator++() {
      ++value_;
      return *this;
    }
    friend constexpr bool operator==(Iterator, Iterator) = default;

   private:
    int32_t value_;
  };

  constexpr IdRange(int32_t first, int32_t last) : first_(first), last_(last) {}
  constexpr Iterator begin() const { return Iterator(first_); }
  constexpr Iterator end() const { return Iterator(last_); }
  constexpr int32_t size() const { return last_ - first_; }
  constexpr bool empty() const { return first_ == last_; }
  constexpr IdType operator[](int32_t i) const { return IdType{first_ + i}; }

 private:
  int32_t first_, last_;
};

}  // namespace tutti
