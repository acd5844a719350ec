#include "whole_file.h"

#include <algorithm>
#include <utility>

#include "binary.h"

namespace tutti {
namespace {

class WholeFileReader : public ScheduleReader {
 public:
  explicit WholeFileReader(ScheduleFile file)
      : topology_(std::move(file.topology)), header_(std::move(file.schedule)) {
    transfers_ = std::exchange(header_.transfers, {});
    start_ps_ = std::exchange(header_.start_ps, {});
  }

  const Topology& topology() const override { return topology_; }
  const Schedule& header() const override { return header_; }
  uint64_t num_transfers() const override { return transfers_.size(); }
  Result<bool> Next(std::vector<Transfer>& transfers, std::vector<int64_t>& start_ps) override {
    const size_t count = std::min<size_t>(transfers_.size() - at_, binary::kBlockTransfers);
    const auto piece = [&](const auto& all, auto& out) {
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(at_);
      out.assign(first, first + static_cast<std::ptrdiff_t>(count));
    };
    piece(transfers_, transfers);
    start_ps.clear();
    if (!start_ps_.empty()) piece(start_ps_, start_ps);
    at_ += count;
    return count > 0;
  }

 private:
  Topology topology_;
  Schedule header_;
  std::vector<Transfer> transfers_;
  std::vector<int64_t> start_ps_;
  size_t at_ = 0;
};

}  // namespace

std::unique_ptr<ScheduleReader> MakeWholeFileReader(ScheduleFile file) {
  return std::make_unique<WholeFileReader>(std::move(file));
}

}  // namespace tutti
