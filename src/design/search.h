// The bottom-up search of section 5.4, with a memory: frontiers by (ranks, degree).
//
// Model       All(N, d): bases; factors and their products; line digraphs of All(N / d, d); degree
//             expansions of All(N / n, d / n); powers of All(N^(1/n), d / n); All(N, d / 2) made
//             bidirectional. Factors(N, d): bases that are factors, degree expansions of
//             bidirectional factors, products of two factors; of several factors by induction.
// Complexity  Every size asked for divides the N of the question, so there are few.
// Threads     One thread at a time; Prefetch looks at bases in parallel.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base.h"
#include "frontier.h"

namespace tutti::design {

class Search {
 public:
  // `own` are the asker's bases, beside the known ones but those of the family `without`.
  explicit Search(std::vector<BaseEntry> own = {}, std::string_view without = {})
      : own_(std::move(own)), without_(without) {}
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  const Frontier& All(int32_t ranks, int32_t degree);
  // What All() chooses from, each recipe once: the dominated ones, too, as far as they are bases or
  // expansions of what is not dominated.
  std::vector<const Candidate*> Every(int32_t ranks, int32_t degree);
  const Frontier& Factors(int32_t ranks, int32_t degree);
  // Evaluates the bases that All() of every size up to max_ranks needs.
  void Prefetch(const std::vector<int32_t>& degrees, int32_t max_ranks);

 private:
  using Size = std::pair<int32_t, int32_t>;  // ranks, degree
  struct Bases {
    std::vector<Candidate> factors, others;
    bool has_factors = false, has_others = false;
  };

  const Bases& BasesOf(Size size, bool others_too);
  void List(Size size, bool factors, Bases& bases) const;
  void OfferProducts(Size size, Frontier& frontier);
  void OfferAll(Size size, const std::function<void(Candidate)>& offer);

  std::vector<BaseEntry> own_;
  std::string_view without_;
  std::deque<Candidate> arena_;
  std::map<Size, Bases> bases_;
  std::map<Size, Frontier> all_, factors_;
};

}  // namespace tutti::design
