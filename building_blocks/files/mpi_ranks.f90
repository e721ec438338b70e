! What the programs of libraries over MPI share in Fortran, as mpi_ranks.h in C, with the same statuses.
module mpi_ranks
  use mpi
  implicit none
  integer :: rank, ranks, wrong = 0, ierr

contains

  ! Counts what does not hold, and says it.
  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (.not. holds) then
      write (0, '(a,i0,2a)') 'rank ', rank, ': wrong: ', what
      wrong = wrong + 1
    end if
  end subroutine check

  subroutine begin()
    character(16) :: asked
    integer :: number
    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
    call get_environment_variable('HPCGEN_RANKS', asked)
    if (asked == '') return
    read (asked, *) number
    if (number /= ranks) then
      call MPI_Finalize(ierr)
      error stop 3
    end if
  end subroutine begin

  ! A file of the folder that all ranks share: the program's first argument, else the present folder.
  function file_in(name) result(path)
    character(*), intent(in) :: name
    character(:), allocatable :: path
    character(4096) :: folder
    call get_command_argument(1, folder)
    if (folder == '') folder = '.'
    path = trim(folder)//'/'//name
  end function file_in

  ! The MPI libraries of C that are mapped, one line for each.
  integer function libraries()
    character(4400) :: line, last
    integer :: maps, status, start
    libraries = 0
    last = ''
    open (newunit=maps, file='/proc/self/maps', action='read', status='old')
    do
      read (maps, '(a)', iostat=status) line
      if (status /= 0) exit
      start = index(line, '/')
      if (start == 0) cycle
      line = line(start:)
      if (line == last) cycle
      if (index(line, '/libmpi.so') > 0 .or. index(line, '/libmpich.so') > 0) then
        print '(a,i0,2a)', 'rank ', rank, ' maps ', trim(line)
        last = line
        libraries = libraries + 1
      end if
    end do
    close (maps)
  end function libraries

  ! Removes the file, if there is one, and says on rank 0 what held on all ranks.
  subroutine end_with(what, file)
    character(*), intent(in) :: what
    character(*), intent(in), optional :: file
    integer :: mine(2), most(2), unit
    mine = [wrong, libraries()]
    call MPI_Allreduce(mine, most, 2, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierr)
    if (rank == 0 .and. present(file)) then
      open (newunit=unit, file=file)
      close (unit, status='delete')
    end if
    if (rank == 0 .and. most(1) == 0 .and. most(2) <= 1) print '(i0,2a)', ranks, ' ranks: ', what
    if (rank == 0 .and. most(2) > 1) write (0, '(a)') 'a second MPI library is loaded'
    call MPI_Finalize(ierr)
    if (most(1) > 0) error stop 2
    if (most(2) > 1) error stop 4
  end subroutine end_with
end module mpi_ranks
