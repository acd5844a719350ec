! Every collective beside the all-to-alls, two of them in place, and one nonblocking, by module mpi.
program fortran_collectives
  use mpi
  implicit none
  integer :: rank, ranks, error, i, faults, all_faults, root, total, mine, got, request
  integer, allocatable :: all(:), counts(:), at(:), many(:), part(:)

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  allocate (all(ranks), counts(ranks), at(ranks), many(2*ranks), part(2))
  root = ranks - 1
  total = ranks*(ranks + 1)/2
  mine = rank + 1
  faults = 0
  do i = 1, ranks
    counts(i) = 1 + mod(i, 2)
    at(i) = 2*(i - 1)
  end do

  call MPI_Barrier(MPI_COMM_WORLD, error)
  call MPI_Allreduce(mine, got, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  if (got /= total) faults = faults + 1
  got = mine
  call MPI_Allreduce(MPI_IN_PLACE, got, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, error)
  if (got /= ranks) faults = faults + 1

  call MPI_Allgather(mine, 1, MPI_INTEGER, all, 1, MPI_INTEGER, MPI_COMM_WORLD, error)
  do i = 1, ranks
    if (all(i) /= i) faults = faults + 1
  end do

  many = -1
  many(at(mine) + 1:at(mine) + counts(mine)) = mine
  call MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, many, counts, at, MPI_INTEGER, MPI_COMM_WORLD, error)
  do i = 1, ranks
    if (many(at(i) + 1) /= i) faults = faults + 1
    if (many(at(i) + 2) /= merge(i, -1, counts(i) == 2)) faults = faults + 1
  end do

  got = merge(4711, 0, rank == root)
  call MPI_Bcast(got, 1, MPI_INTEGER, root, MPI_COMM_WORLD, error)
  if (got /= 4711) faults = faults + 1

  got = 0
  call MPI_Reduce(mine, got, 1, MPI_INTEGER, MPI_SUM, root, MPI_COMM_WORLD, error)
  if (got /= merge(total, 0, rank == root)) faults = faults + 1

  all = 0
  call MPI_Gather(mine, 1, MPI_INTEGER, all, 1, MPI_INTEGER, root, MPI_COMM_WORLD, error)
  do i = 1, ranks
    if (all(i) /= merge(i, 0, rank == root)) faults = faults + 1
  end do
  call MPI_Scatter(all, 1, MPI_INTEGER, got, 1, MPI_INTEGER, root, MPI_COMM_WORLD, error)
  if (got /= mine) faults = faults + 1

  do i = 1, ranks
    all(i) = mine*i
  end do
  call MPI_Reduce_scatter_block(all, got, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  if (got /= total*mine) faults = faults + 1

  do i = 1, sum(counts)
    many(i) = mine + i
  end do
  call MPI_Reduce_scatter(many, part, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  do i = 1, counts(mine)
    if (part(i) /= total + ranks*(sum(counts(1:rank)) + i)) faults = faults + 1
  end do

  call MPI_Iallreduce(mine, got, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request, error)
  call MPI_Wait(request, MPI_STATUS_IGNORE, error)
  if (got /= total) faults = faults + 1

  call MPI_Reduce(faults, all_faults, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, error)
  if (rank == 0) print '(a, i0, a, i0, a)', 'fortran_collectives: ', ranks, ' ranks, ', all_faults, ' faults'
  call MPI_Finalize(error)
  if (faults > 0) stop 1
end program
