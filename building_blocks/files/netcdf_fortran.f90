! Every rank writes its row of one netCDF-4 file with all others, and reads that of the next rank.
program netcdf_fortran
  use mpi_ranks
  use netcdf
  implicit none
  integer, parameter :: columns = 1000
  integer :: row(columns), i, other, file, dimensions(2), rows
  character(:), allocatable :: path

  call begin()
  path = file_in('netcdf_fortran.nc')
  ierr = nf90_create(path, ior(NF90_CLOBBER, NF90_NETCDF4), file, comm=MPI_COMM_WORLD, info=MPI_INFO_NULL)
  call check(ierr == NF90_NOERR, 'the file is made by all ranks')
  ierr = nf90_def_dim(file, 'column', columns, dimensions(1))
  ierr = nf90_def_dim(file, 'rank', ranks, dimensions(2))
  ierr = nf90_def_var(file, 'rows', NF90_INT, dimensions, rows)
  ierr = nf90_enddef(file)
  ierr = nf90_var_par_access(file, rows, NF90_COLLECTIVE)
  row = [(rank*columns + i, i=1, columns)]
  ierr = nf90_put_var(file, rows, row, start=[1, rank + 1], count=[columns, 1])
  call check(ierr == NF90_NOERR, 'the row is written')
  ierr = nf90_close(file)

  ierr = nf90_open(path, NF90_NOWRITE, file, comm=MPI_COMM_WORLD, info=MPI_INFO_NULL)
  call check(ierr == NF90_NOERR, 'the file is opened')
  ierr = nf90_inq_varid(file, 'rows', rows)
  ierr = nf90_var_par_access(file, rows, NF90_COLLECTIVE)
  other = mod(rank + 1, ranks)
  ierr = nf90_get_var(file, rows, row, start=[1, other + 1], count=[columns, 1])
  call check(ierr == NF90_NOERR, 'the next rank''s row is read')
  call check(all(row == [(other*columns + i, i=1, columns)]), 'the row is what the next rank wrote')
  ierr = nf90_close(file)
  call end_with('wrote one netCDF-4 file from Fortran and read it', path)
end program netcdf_fortran
