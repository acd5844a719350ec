! An all-to-all-v of uneven blocks, one in place, one uniform, a nonblocking and a persistent one, by include 'mpif.h'.
program fortran_mpif
  implicit none
  include 'mpif.h'
  integer :: rank, ranks, error, i, k, faults, all_faults, at_send, at_receive
  integer, allocatable :: send(:), receive(:), send_counts(:), send_at(:)
  integer, allocatable :: receive_counts(:), receive_at(:), data(:)
  integer(kind=MPI_ADDRESS_KIND) :: address, addresses(1)
  integer :: lengths(1)
  external :: ALLTOALLV_INIT
  integer :: request, at_address, absolute

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  allocate (send_counts(ranks), send_at(ranks), receive_counts(ranks), receive_at(ranks), data(ranks))
  at_send = 0
  at_receive = 0
  do i = 1, ranks
    send_counts(i) = count_of(rank, i - 1)
    send_at(i) = at_send
    at_send = at_send + send_counts(i)
    receive_counts(i) = count_of(i - 1, rank)
    receive_at(i) = at_receive
    at_receive = at_receive + receive_counts(i)
  end do
  allocate (send(at_send + 1), receive(at_receive + 1))
  do i = 1, ranks
    do k = 1, send_counts(i)
      send(send_at(i) + k) = item(rank, i - 1, k)
    end do
  end do
  faults = 0
  receive = -1
  call MPI_Alltoallv(send, send_counts, send_at, MPI_INTEGER, receive, receive_counts, receive_at, &
                     MPI_INTEGER, MPI_COMM_WORLD, error)
  call check_blocks()
  receive = -1
  call MPI_Ialltoallv(send, send_counts, send_at, MPI_INTEGER, receive, receive_counts, receive_at, &
                      MPI_INTEGER, MPI_COMM_WORLD, request, error)
  call MPI_Wait(request, MPI_STATUS_IGNORE, error)
  call check_blocks()

  ! Open MPI 4 has the persistent form under another name, which the build defines.
  receive = -1
  call ALLTOALLV_INIT(send, send_counts, send_at, MPI_INTEGER, receive, receive_counts, receive_at, &
                      MPI_INTEGER, MPI_COMM_WORLD, MPI_INFO_NULL, request, error)
  call MPI_Start(request, error)
  call MPI_Wait(request, MPI_STATUS_IGNORE, error)
  call check_blocks()
  call MPI_Request_free(request, error)

  do i = 1, ranks
    data(i) = item(rank, i - 1, 0)
    send_counts(i) = 1
    send_at(i) = i - 1
  end do
  call MPI_Alltoallv(MPI_IN_PLACE, send_counts, send_at, MPI_INTEGER, data, send_counts, send_at, &
                     MPI_INTEGER, MPI_COMM_WORLD, error)
  call check_data()
  do i = 1, ranks
    data(i) = item(rank, i - 1, 0)
  end do
  call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INTEGER, data, 1, MPI_INTEGER, MPI_COMM_WORLD, error)
  call check_data()

  ! Absolute addresses: the send buffer is MPI_BOTTOM, the datatype says where the data lie.
  do i = 1, ranks
    data(i) = item(rank, i - 1, 0)
  end do
  call MPI_Get_address(data, address, error)
  lengths(1) = 1
  addresses(1) = address
  call MPI_Type_create_hindexed(1, lengths, addresses, MPI_INTEGER, at_address, error)
  call MPI_Type_create_resized(at_address, 0_MPI_ADDRESS_KIND, 4_MPI_ADDRESS_KIND, absolute, error)
  call MPI_Type_commit(absolute, error)
  deallocate (receive)
  allocate (receive(ranks))
  call MPI_Alltoallv(MPI_BOTTOM, send_counts, send_at, absolute, receive, send_counts, send_at, &
                     MPI_INTEGER, MPI_COMM_WORLD, error)
  data = receive
  call check_data()
  call MPI_Type_free(at_address, error)
  call MPI_Type_free(absolute, error)

  call MPI_Allreduce(faults, all_faults, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  if (rank == 0) print '(a, i0, a, i0, a)', 'fortran_mpif: ', ranks, ' ranks, ', all_faults, ' faults'
  call MPI_Finalize(error)
  if (all_faults > 0) stop 1
contains
  integer function item(from, to, k)
    integer, intent(in) :: from, to, k
    item = from * 10000 + to * 100 + k
  end function
  integer function count_of(from, to)
    integer, intent(in) :: from, to
    count_of = mod(from * 3 + to * 5, 4)
  end function
  subroutine check_blocks()
    integer :: block, entry
    do block = 1, ranks
      do entry = 1, receive_counts(block)
        if (receive(receive_at(block) + entry) /= item(block - 1, rank, entry)) faults = faults + 1
      end do
    end do
    if (receive(at_receive + 1) /= -1) faults = faults + 1
  end subroutine
  subroutine check_data()
    integer :: block
    do block = 1, ranks
      if (data(block) /= item(block - 1, rank, 0)) faults = faults + 1
    end do
  end subroutine
end program
