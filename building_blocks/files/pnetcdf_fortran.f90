! Every rank writes its row of one file with all others, and reads that of the next rank.
program pnetcdf_fortran
  use mpi_ranks
  use pnetcdf
  implicit none
  integer, parameter :: columns = 1000
  integer :: row(columns), i, other, file, dimensions(2), rows
  integer(MPI_OFFSET_KIND) :: start(2), part(2)
  character(:), allocatable :: path

  call begin()
  path = file_in('pnetcdf_fortran.nc')
  part = [integer(MPI_OFFSET_KIND) :: columns, 1]
  ierr = nf90mpi_create(MPI_COMM_WORLD, path, ior(NF90_CLOBBER, NF90_64BIT_DATA), MPI_INFO_NULL, file)
  call check(ierr == NF90_NOERR, 'the file is made')
  ierr = nf90mpi_def_dim(file, 'column', part(1), dimensions(1))
  ierr = nf90mpi_def_dim(file, 'rank', int(ranks, MPI_OFFSET_KIND), dimensions(2))
  ierr = nf90mpi_def_var(file, 'rows', NF90_INT, dimensions, rows)
  ierr = nf90mpi_enddef(file)
  row = [(rank*columns + i, i=1, columns)]
  start = [integer(MPI_OFFSET_KIND) :: 1, rank + 1]
  ierr = nf90mpi_put_var_all(file, rows, row, start=start, count=part)
  call check(ierr == NF90_NOERR, 'the row is written')
  ierr = nf90mpi_close(file)

  ierr = nf90mpi_open(MPI_COMM_WORLD, path, NF90_NOWRITE, MPI_INFO_NULL, file)
  call check(ierr == NF90_NOERR, 'the file is opened')
  ierr = nf90mpi_inq_varid(file, 'rows', rows)
  other = mod(rank + 1, ranks)
  start = [integer(MPI_OFFSET_KIND) :: 1, other + 1]
  ierr = nf90mpi_get_var_all(file, rows, row, start=start, count=part)
  call check(ierr == NF90_NOERR, 'the next rank''s row is read')
  call check(all(row == [(other*columns + i, i=1, columns)]), 'the row is what the next rank wrote')
  ierr = nf90mpi_close(file)
  call end_with('wrote one file by PnetCDF from Fortran and read it', path)
end program pnetcdf_fortran
