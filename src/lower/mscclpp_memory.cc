#include "mscclpp_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/base/index.h"

namespace tutti::lower {
namespace {

using Kind = CollectiveKind;

}  // namespace

std::optional<PpLayout> PpLayout::Make(const PpFile& file, std::vector<PlanFault>& faults) {
  const Result<Kind> kind = ParseCollectiveKind(file.collective);
  const bool known =
      kind && *kind != Kind::kAllToAllV && *kind != Kind::kGather && *kind != Kind::kScatter;
  if (!known) {
    faults.push_back(
        {fmt::format("plan: collective '{}' is none whose result is defined; those "
                     "are allgather, reducescatter, allreduce, broadcast, reduce, "
                     "alltoall",
                     file.collective)});
    return std::nullopt;
  }
  PpLayout layout;
  layout.kind_ = *kind;
  layout.in_place_ = file.in_place;
  layout.ranks_ = static_cast<int64_t>(file.ranks.size());
  // Chunks of input and output in parts of the collective.
  const bool gathers = *kind == Kind::kAllGather, scatters = *kind == Kind::kReduceScatter,
             exchanges = *kind == Kind::kAllToAll;
  const int64_t inputs = scatters || exchanges ? layout.ranks_ : 1;
  const int64_t outputs = gathers || exchanges ? layout.ranks_ : 1;
  if (exchanges && file.in_place)
    faults.push_back(
        {fmt::format("plan: 'inplace', but {} has no in-place form", file.collective)});
  for (size_t r = 0; r < file.ranks.size(); ++r) {
    const std::array<int64_t, 3>& chunks = file.ranks[r].chunks;
    for (const auto& [got, parts, what] : {std::tuple(chunks[0], inputs, "input_chunks"),
                                           std::tuple(chunks[1], outputs, "output_chunks")}) {
      const bool may_lack = file.in_place && chunks[0] + chunks[1] > 0;
      if (got == 0 && may_lack) continue;
      if (layout.shard_ == 0 && got > 0 && got % parts == 0) layout.shard_ = got / parts;
      if (got == 0 || got != layout.shard_ * parts)
        faults.push_back(
            {fmt::format("gpu {}: {} is {}; {} over {} gpus has {} times the same at "
                         "each",
                         r, what, got, file.collective, layout.ranks_, parts)});
    }
    layout.scratch_.push_back(chunks[2]);
  }
  if (!faults.empty()) return std::nullopt;
  return layout;
}

int64_t PpLayout::Chunks(size_t rank, Buffer buffer) const {
  const bool exchanges = kind_ == Kind::kAllToAll;
  if (buffer == Buffer::kScratch) return scratch_[rank];
  const bool many =
      exchanges || kind_ == (buffer == Buffer::kInput ? Kind::kReduceScatter : Kind::kAllGather);
  return shard_ * (many ? ranks_ : 1);
}

int64_t PpLayout::Alias(size_t rank, int64_t output_chunk) const {
  if (!in_place_ || kind_ == Kind::kAllToAll) return -1;
  const int64_t own = static_cast<int64_t>(rank) * shard_;
  if (kind_ == Kind::kReduceScatter) return own + output_chunk;
  if (kind_ != Kind::kAllGather) return output_chunk;
  return own <= output_chunk && output_chunk < own + shard_ ? output_chunk - own : -1;
}

int64_t PpLayout::InputPosition(size_t rank, int64_t chunk) const {
  if (kind_ == Kind::kAllGather) return static_cast<int64_t>(rank) * shard_ + chunk;
  if (kind_ != Kind::kAllToAll) return chunk;
  return (static_cast<int64_t>(rank) * ranks_ + chunk / shard_) * shard_ + chunk % shard_;
}

int64_t PpLayout::OutputPosition(size_t rank, int64_t chunk) const {
  const auto own = static_cast<int64_t>(rank);
  if (kind_ == Kind::kReduceScatter) return own * shard_ + chunk;
  if (kind_ != Kind::kAllToAll) return chunk;
  return (chunk / shard_ * ranks_ + own) * shard_ + chunk % shard_;
}

PpMemory::PpMemory(const PpFile& file, const PpLayout& layout, int64_t cells_per_chunk)
    : file_(file),
      layout_(layout),
      per_chunk_(cells_per_chunk),
      sets_(static_cast<int32_t>(file.ranks.size())) {
  size_t next = 0;
  for (size_t r = 0; r < file.ranks.size(); ++r) {
    first_.emplace_back();
    for (const Buffer buffer : {Buffer::kInput, Buffer::kOutput, Buffer::kScratch}) {
      first_[r][static_cast<size_t>(buffer)] = next;
      next += Index(layout.Chunks(r, buffer) * per_chunk_);
    }
  }
  cells_.resize(next);
  for (size_t r = 0; r < file.ranks.size(); ++r) {
    const int32_t own = sets_.Single(static_cast<int32_t>(r));
    for (int64_t cell = 0; cell < layout.Chunks(r, Buffer::kInput) * per_chunk_; ++cell)
      cells_[first_[r][0] + Index(cell)].value = {
          layout.InputPosition(r, cell / per_chunk_) * per_chunk_ + cell % per_chunk_, own, false,
          false};
  }
}

size_t PpMemory::IndexOf(int32_t rank, Buffer buffer, int64_t cell) const {
  const std::array<size_t, 3>& first = first_[Index(rank)];
  if (buffer == Buffer::kOutput) {
    const int64_t alias = layout_.Alias(Index(rank), cell / per_chunk_);
    if (alias >= 0) return first[0] + Index(alias * per_chunk_ + cell % per_chunk_);
  }
  return first[static_cast<size_t>(buffer)] + Index(cell);
}

std::string PpMemory::NameOf(const PpValue& value) const {
  if (value.position < 0) return "nothing";
  int32_t count = 0, last = 0;
  for (int32_t r = 0; r < static_cast<int32_t>(file_.ranks.size()); ++r)
    if (sets_.Has(value.set, r)) {
      ++count;
      last = r;
    }
  return fmt::format("chunk {} of {}", value.position / per_chunk_,
                     count == 1 ? fmt::format("gpu {}", last) : fmt::format("{} gpus", count));
}

std::optional<PpValue> PpMemory::Reduce(const PpValue& a, const PpValue& b, std::string& fault) {
  if (a.spoilt || b.spoilt) return PpValue{-1, -1, false, true};
  if (a.position != b.position) {
    fault = fmt::format("reduces {} with {}", NameOf(a), NameOf(b));
    return std::nullopt;
  }
  const int32_t united = sets_.Unite(a.set, b.set);
  if (united >= 0) return PpValue{a.position, united, false, false};
  fault = fmt::format("counts the contribution of gpu {} to chunk {} twice",
                      sets_.FirstShared(a.set, b.set), a.position / per_chunk_);
  return std::nullopt;
}

// A plan does not say which rank is the root. Of a broadcast it is whose data rank 0 ends with; of a
// reduce who ends with everything.
int64_t PpMemory::Root() {
  if (layout_.kind() == Kind::kBroadcast) {
    const PpValue& got = At(0, Buffer::kOutput, 0).value;
    for (int32_t r = 0; got.set >= 0 && r < static_cast<int32_t>(file_.ranks.size()); ++r)
      if (got.set == sets_.Single(r)) return r;
    return 0;
  }
  for (int32_t r = 0; r < static_cast<int32_t>(file_.ranks.size()); ++r)
    if (At(r, Buffer::kOutput, 0).value.set == sets_.All()) return r;
  return 0;
}

int32_t PpMemory::Wanted(size_t rank, int64_t position) {
  const auto ranks = static_cast<int64_t>(file_.ranks.size());
  switch (layout_.kind()) {
    case Kind::kAllGather:
      return sets_.Single(static_cast<int32_t>(position / layout_.Chunks(rank, Buffer::kInput)));
    case Kind::kAllToAll:
      return sets_.Single(
          static_cast<int32_t>(position / (layout_.Chunks(rank, Buffer::kInput) / ranks) / ranks));
    case Kind::kBroadcast:
      return sets_.Single(static_cast<int32_t>(root_));
    case Kind::kReduce:
      return static_cast<int64_t>(rank) == root_ ? sets_.All() : -1;
    default:
      return sets_.All();
  }
}

std::string PpMemory::WhatLacks(const PpValue& got, int64_t position, int32_t wanted) const {
  if (got.position != position || got.position < 0) return NameOf(got);
  const int32_t lacking = sets_.FirstLacking(wanted, got.set);
  return lacking >= 0 ? fmt::format("it without the contribution of gpu {}", lacking) : NameOf(got);
}

void PpMemory::CheckResults(const std::function<bool(size_t rank, const PpStamp&)>& arrived,
                            std::vector<PlanFault>& faults) {
  if (layout_.kind() == Kind::kBroadcast || layout_.kind() == Kind::kReduce) root_ = Root();
  for (size_t r = 0; r < file_.ranks.size(); ++r)
    for (int64_t cell = 0; cell < layout_.Chunks(r, Buffer::kOutput) * per_chunk_; ++cell) {
      const int64_t chunk = layout_.OutputPosition(r, cell / per_chunk_);
      const int32_t wanted = Wanted(r, chunk);
      if (wanted < 0) break;
      const Cell& at = At(static_cast<int32_t>(r), Buffer::kOutput, cell);
      const PpValue& got = at.value;
      const int64_t position = chunk * per_chunk_ + cell % per_chunk_;
      const bool right = got.position == position && got.set == wanted && !got.packet;
      if (got.spoilt || (right && arrived(r, at.writer))) continue;
      if (right)
        faults.push_back(
            {fmt::format("gpu {}: output chunk {} may not have arrived when all its "
                         "thread blocks are done",
                         r, cell / per_chunk_)});
      else
        faults.push_back({fmt::format(
            "gpu {}: output chunk {} should end with {} and ends with {}", r, cell / per_chunk_,
            NameOf({position, wanted, false, false}), WhatLacks(got, position, wanted))});
      break;  // one a rank
    }
}

}  // namespace tutti::lower
