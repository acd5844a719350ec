#include "engine/across_nodes.h"

#include <algorithm>

namespace tutti::mpi::preload {

int AcrossNodes::Make(MPI_Comm communicator, int rank, std::span<const int> nodes,
                      std::unique_ptr<AcrossNodes>* made) {
  std::vector<int> sizes(static_cast<size_t>(*std::max_element(nodes.begin(), nodes.end())) + 1);
  for (const int node : nodes) ++sizes[static_cast<size_t>(node)];
  const int most = *std::max_element(sizes.begin(), sizes.end());
  if (most < 2 || most > NodeCollectives::kMaxRanks) return MPI_SUCCESS;
  std::unique_ptr<AcrossNodes> across(new AcrossNodes);
  if (const int error = across->Open(communicator, rank, nodes)) return error;
  const bool is_alone = sizes[static_cast<size_t>(across->node_)] == 1;
  int usable = is_alone || across->memory_ != nullptr ? 1 : 0;
  if (const int error = PMPI_Allreduce(MPI_IN_PLACE, &usable, 1, MPI_INT, MPI_MIN, communicator))
    return error;
  if (usable != 0) *made = std::move(across);
  return MPI_SUCCESS;
}

int AcrossNodes::Open(MPI_Comm communicator, int rank, std::span<const int> nodes) {
  nodes_.assign(nodes.begin(), nodes.end());
  std::vector<int> seen(nodes_.size());
  for (const int node : nodes_) rank_in_node_of_.push_back(seen[static_cast<size_t>(node)]++);
  node_ = node_of(rank);
  rank_in_node_ = rank_in_node_of_[static_cast<size_t>(rank)];
  const int here = seen[static_cast<size_t>(node_)];
  if (const int error = PMPI_Comm_split(communicator, node_, rank, &of_node_)) return error;
  if (const int error =
          PMPI_Comm_split(communicator, is_leader() ? 0 : MPI_UNDEFINED, node_, &leaders_))
    return error;
  for (const MPI_Comm each : {of_node_, leaders_})
    if (each != MPI_COMM_NULL) PMPI_Comm_set_errhandler(each, MPI_ERRORS_RETURN);
  return here == 1 ? MPI_SUCCESS : NodeCollectives::Make(of_node_, rank_in_node_, here, &memory_);
}

AcrossNodes::~AcrossNodes() {
  memory_.reset();
  int finalized = 0;
  PMPI_Finalized(&finalized);
  for (MPI_Comm* each : {&leaders_, &of_node_})
    if (*each != MPI_COMM_NULL && finalized == 0) PMPI_Comm_free(each);
}

int AcrossNodes::Barrier() {
  if (memory_ != nullptr) memory_->Barrier();
  if (is_leader())
    if (const int error = PMPI_Barrier(leaders_)) return error;
  if (memory_ != nullptr) memory_->Barrier();
  return MPI_SUCCESS;
}

int AcrossNodes::Broadcast(std::byte* data, int64_t bytes, int root) {
  constexpr int64_t kMostAtOnce = int64_t{1} << 30;
  const bool is_of_root = node_of(root) == node_;
  const int root_in_node = rank_in_node_of_[static_cast<size_t>(root)];
  if (is_of_root && memory_ != nullptr) memory_->Broadcast(data, bytes, root_in_node);
  if (is_leader())
    for (int64_t at = 0; at < bytes; at += kMostAtOnce)
      if (const int error =
              PMPI_Bcast(data + at, static_cast<int>(std::min(kMostAtOnce, bytes - at)), MPI_BYTE,
                         node_of(root), leaders_))
        return error;
  if (!is_of_root && memory_ != nullptr) memory_->Broadcast(data, bytes, 0);
  return MPI_SUCCESS;
}

int AcrossNodes::AllReduce(const std::byte* in, std::byte* out, int count,
                           const Elements& elements) {
  const int64_t bytes = count * elements.size;
  if (memory_ != nullptr) {
    if (const int error = memory_->Reduce(in, out, count, elements, 0)) return error;
  } else if (in != out) {
    std::copy_n(in, bytes, out);
  }
  if (is_leader())
    if (const int error =
            PMPI_Allreduce(MPI_IN_PLACE, out, count, elements.type, elements.op, leaders_))
      return error;
  if (memory_ != nullptr) memory_->Broadcast(out, bytes, 0);
  return MPI_SUCCESS;
}

}  // namespace tutti::mpi::preload
