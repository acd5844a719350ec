// The certificate of isolation: what each tenant has left on its worst link, from the strategies
// that are installed, and that no link carries a class that its reservation excludes.
//
// Model       A link is used by a job if one of its flows passes it, or may pass it where ECMP
//             decides. On a link a tenant has capacity x the sum of the weights of its jobs there /
//             the sum of the weights of all jobs there; its share is the least of that over the
//             links that its jobs use, NICs included. That is what senders and switches that
//             enforce weights give at least; traffic outside the service is not counted.
//             A link is for classes from c on if every route of the network through it is reserved,
//             the least of them for c (control/policy.h says which routes are).
// Invariants  Independent of the policies: what is judged are rings, flows and routes, whoever made
//             them. All faults are reported, not the first one only.
// Units       bytes/s, exact.
// Complexity  O(hops of all routes + hops of the flows x log).
// Reference   ours; [mccs] 4.3 for reservations.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "tutti/base/ids.h"
#include "tutti/base/rational.h"
#include "tutti/control/policy.h"

namespace tutti {

// A tenant by number, or a job that names none and is its own.
struct TenantKey {
  int32_t tenant = -1, job = -1;  // one of them is -1
  friend auto operator<=>(const TenantKey&, const TenantKey&) = default;
};
TenantKey KeyOfTenant(const PolicyJob& job);
// "tenant 2", "job 5"
std::string NameOf(const TenantKey& tenant);

struct TenantShare {
  TenantKey tenant = {};
  LinkId link = {-1};   // where its share is least, the lowest of several; -1: it uses no link
  Rational share = {};  // capacity x weight / weights; 0 without a link
  int64_t capacity = 0;
  int64_t weight = 0, weights = 0;  // its own on that link, and of all
  int64_t guaranteed = 0;           // the most that one of its jobs asks for; 0: nothing
};

struct IsolationCertificate {
  std::vector<TenantShare> tenants;  // jobs that name no tenant by number, then tenants by number
  std::vector<std::string> faults;   // what keeps it from being one
  bool holds() const { return faults.empty(); }
};

// `input` gives network, reservations and jobs, `installed` what each of them runs, in their order.
IsolationCertificate CertifyIsolation(const PolicyInput& input, const PolicyOutput& installed);

// A line a tenant, then the verdict or a line a fault.
std::string ToText(const IsolationCertificate& certificate, const ClusterView& view);

}  // namespace tutti
