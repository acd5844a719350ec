#include "recorder.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "radix_sort.h"

namespace tutti::sim {
namespace {

// The most messages under way at once; at one instant arrivals come before starts.
int32_t MostAtOnce(std::vector<double> starts, std::vector<double> arrivals) {
  // Doubles of at least 0 ascend as their bits do.
  const auto bits = [](double time) { return std::bit_cast<uint64_t>(time); };
  RadixSort(starts, bits);
  RadixSort(arrivals, bits);
  size_t arrived = 0;
  int64_t most = 0;
  for (size_t started = 0; started < starts.size(); ++started) {
    while (arrived < started && arrivals[arrived] <= starts[started]) ++arrived;
    most = std::max(most, static_cast<int64_t>(started + 1 - arrived));
  }
  return static_cast<int32_t>(most);
}

}  // namespace

Recorder::Recorder(const Topology& topology, const Schedule& schedule, const SimOptions& options)
    : schedule_(schedule),
      options_(options),
      bytes_per_unit_(
          (Rational(options.size_bytes) /
           (Rational(schedule.collective.weight_of_size()) * Rational(schedule.units_per_shard)))
              .ToDouble()) {
  for (LinkId link : topology.Links()) {
    alpha_s_.push_back(static_cast<double>(topology.alpha_ps(link)) * 1e-12);
    bandwidth_.push_back(static_cast<double>(topology.bandwidth(link)));
  }
  report_.link_busy_s.assign(alpha_s_.size(), 0);
  report_.link_bytes.assign(alpha_s_.size(), 0);
}

void Recorder::Add(const SimMessage& message, double hold_s) {
  ++report_.messages;
  report_.time_s = std::max(report_.time_s, message.arrive_s);
  report_.link_busy_s[message.link.index()] += hold_s;
  report_.link_bytes[message.link.index()] += message.bytes;
  starts_.push_back(message.start_s);
  arrivals_.push_back(message.arrive_s);
  if (options_.record_messages) report_.trace.push_back(message);
}

SimReport Recorder::Finish() && {
  report_.max_in_flight = MostAtOnce(std::move(starts_), std::move(arrivals_));
  if (report_.time_s > 0) {  // nothing to send: no bandwidth
    report_.algbw = static_cast<double>(options_.size_bytes) / report_.time_s;
    report_.busbw = report_.algbw * schedule_.collective.BusFactor().ToDouble();
  }
  std::sort(report_.trace.begin(), report_.trace.end(),
            [](const SimMessage& a, const SimMessage& b) {
              return std::tuple(a.start_s, a.link, a.first_transfer) <
                     std::tuple(b.start_s, b.link, b.first_transfer);
            });
  return std::move(report_);
}

}  // namespace tutti::sim
